# The command: the option `taciturn.command`, the environment variable TACITURN, or `taciturn` on the path.
taciturn_command <- function() {
  getOption("taciturn.command", Sys.getenv("TACITURN", "taciturn"))
}

# Run the command and return what it prints; an error of the command becomes an error of R, in its own words.
run_taciturn <- function(arguments) {
  found <- processx::run(taciturn_command(), arguments, error_on_status = FALSE)
  if (found$status != 0) stop(trimws(found$stderr), call. = FALSE)
  found$stdout
}

options_of <- function(given) {
  given <- given[!vapply(given, is.null, logical(1))]
  names(given) <- paste0("--", gsub("_", "-", names(given)))
  unlist(Map(function(name, value) c(name, paste(format(value, digits = 17, trim = TRUE), collapse = ",")), names(given), given), use.names = FALSE)
}

#' Choose a method, rounds and noise for a privacy budget, on public numbers alone.
#' Returns the plan as a list; nothing is run and nothing is spent.
plan <- function(epsilon, samples, sites, dimension, delta = 1e-5, colluding = NULL, graph = "complete") {
  given <- list(epsilon = epsilon, samples = samples, sites = sites, dimension = dimension, delta = delta, colluding = colluding, graph = graph)
  jsonlite::fromJSON(run_taciturn(c("plan", options_of(given), "--json")))
}

#' Train the job in a file; the run folder beside it holds model.json, certificate.json and report.html.
#' Returns the path of the run folder.
train <- function(job) {
  run_taciturn(c("train", job))
  file.path(dirname(job), "run")
}

#' Predict, one row per record of a CSV or Parquet file; returns a data frame.
predict_file <- function(model, table) {
  out <- tempfile(fileext = ".csv")
  on.exit(unlink(out))
  run_taciturn(c("predict", model, table, "--out", out))
  utils::read.csv(out, check.names = FALSE)
}

#' Read the plain JSON of a model: coefficients, intercept, classes, schema and certificate, as lists.
read_model <- function(model) {
  jsonlite::fromJSON(model, simplifyVector = TRUE)
}

#' Compute every number of a certificate again, or check a whole run folder. Returns what was checked, invisibly;
#' stops with the first number that is wrong.
verify <- function(path) {
  invisible(strsplit(run_taciturn(c("verify", path)), "\n")[[1]])
}
