# The command: the option `taciturn.command`, the environment variable TACITURN, or `taciturn` on the path.
taciturn_command <- function() {
  getOption("taciturn.command", Sys.getenv("TACITURN", "taciturn"))
}

# Run the command and return what it prints. If the command fails, stop with the error message of the command.
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

#' Choose a method, the number of rounds and the noise for a privacy budget, from public numbers alone.
#' Returns the plan as a list; nothing is run and nothing is spent.
plan <- function(epsilon, samples, sites, dimension, delta = 1e-5, colluding = NULL, graph = "complete") {
  given <- list(epsilon = epsilon, samples = samples, sites = sites, dimension = dimension, delta = delta, colluding = colluding, graph = graph)
  jsonlite::fromJSON(run_taciturn(c("plan", options_of(given), "--json")))
}

#' Train the job in a file. The folder `run` beside the job then holds model.json, certificate.json and report.html.
#' Returns the path of the run folder.
train <- function(job) {
  run_taciturn(c("train", job))
  file.path(dirname(job), "run")
}

#' Predict for the records of a CSV or Parquet file. Returns a data frame with one row per record.
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

#' Compute every number of a certificate again, or check a whole run folder. Invisibly returns the lines that say what was
#' checked; stops with an error at the first number that is wrong.
verify <- function(path) {
  invisible(strsplit(run_taciturn(c("verify", path)), "\n")[[1]])
}
