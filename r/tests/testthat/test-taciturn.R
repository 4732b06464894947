command <- Sys.which(Sys.getenv("TACITURN", "taciturn"))

test_that("a job is planned, trained, used and verified", {
  skip_if(command == "", "the command taciturn is not installed")
  found <- plan(epsilon = 1, samples = 2000, sites = 4, dimension = 5, colluding = 1)
  expect_gt(found$rounds, 1)
  folder <- file.path(tempfile(), "study")
  dir.create(dirname(folder))
  processx::run(command, c("init", folder))
  run <- train(file.path(folder, "job.toml"))
  expect_true(all(file.exists(file.path(run, c("model.json", "certificate.json")))))
  predicted <- predict_file(file.path(run, "model.json"), file.path(folder, "new.csv"))
  expect_gt(nrow(predicted), 0)
  expect_true(length(read_model(file.path(run, "model.json"))) > 3)
  expect_true(length(verify(run)) > 0)
})

test_that("an altered certificate is an error in the words of the command", {
  skip_if(command == "", "the command taciturn is not installed")
  file <- tempfile(fileext = ".json")
  writeLines("{}", file)
  expect_error(verify(file), "taciturn:")
})
