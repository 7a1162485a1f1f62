# Reads R's collector when the session ends. Runs the user's own profile too, as R itself would have.
# Nothing here may make a program fail.
tryCatch(local({
  folder <- "@FOLDER@"
  cycles <- 0L
  gc.time(TRUE) # R measures the time of collections from now on
  over <- FALSE
  arm <- function() {
    reg.finalizer(new.env(), function(e) if (!over) { cycles <<- cycles + 1L; arm() })
    invisible()
  }
  keep <- new.env()
  assign(".scruple", keep, envir = .userHooksEnv) # programs neither list nor clear this environment
  reg.finalizer(keep, function(e) {
    over <<- TRUE
    time <- gc.time()
    used <- gc()
    lines <- c(
      paste0("pid=", Sys.getpid()), paste0("version=", getRversion()), paste0("cycles=", cycles),
      paste0("gc_seconds=", time[3]),
      paste0("max_used_mb=", sum(used[, ncol(used)])))
    try(writeLines(lines, tempfile(paste0("r-", Sys.getpid(), "-"), folder, ".txt")), silent = TRUE)
  }, onexit = TRUE)
  arm()
}), error = function(e) NULL)
local({
  own <- Sys.getenv("R_PROFILE_USER", NA)
  if (is.na(own)) own <- Filter(file.exists, c(".Rprofile", "~/.Rprofile"))[1]
  if (!is.na(own) && nzchar(own) && file.exists(own)) source(own, local = .GlobalEnv, echo = FALSE, print.eval = TRUE)
})
