# Prints golden values for package results/stats, computed independently of it
# by R: prop.test, binom.test, aov, p.adjust and friends where base R has the
# method, the published formula written out where it has not.
#
#   Rscript scripts/stats-golden/golden.R results/stats/testdata
#
# writes one CSV per method into that directory. Needs base R only.

dir <- commandArgs(trailingOnly = TRUE)[1]
if (is.na(dir)) stop("give the directory to write to, e.g. results/stats/testdata")

emit <- function(name, d) {
  for (j in names(d)) if (is.double(d[[j]])) d[[j]] <- sprintf("%.15g", d[[j]])
  write.csv(d, file.path(dir, paste0(name, ".csv")), row.names = FALSE, quote = FALSE, eol = "\n")
}
rows <- function(l) do.call(rbind, lapply(l, as.data.frame))

# One rate -------------------------------------------------------------------

grid <- rows(unlist(lapply(c(1L, 2L, 5L, 10L, 40L, 100L, 1000L), function(n)
  lapply(unique(c(0L, 1L, n %/% 3L, n %/% 2L, n - 1L, n)), function(k)
    list(k = k, n = n))), recursive = FALSE))

# prop.test without continuity correction is Wilson's interval.
emit("wilson", rows(unlist(lapply(c(0.8, 0.9, 0.95, 0.99), function(level)
  lapply(seq_len(nrow(grid)), function(i) {
    ci <- suppressWarnings(prop.test(grid$k[i], grid$n[i], conf.level = level, correct = FALSE))$conf.int
    list(k = grid$k[i], n = grid$n[i], level = level, lo = ci[1], hi = ci[2])
  })), recursive = FALSE)))

# ANOVA intraclass correlation from R's own aov, then the score interval as the
# roots of (p - x)^2 = z^2 x (1-x) / n_eff.
wilson_roots <- function(p, n, level) {
  z2 <- qnorm(1 - (1 - level) / 2)^2
  a <- 1 + z2 / n; b <- -(2 * p + z2 / n); c <- p^2
  s <- sqrt(b^2 - 4 * a * c)
  c((-b - s) / (2 * a), (-b + s) / (2 * a))
}
clustered <- function(ks, ns) {
  y <- unlist(mapply(function(k, n) rep(c(1, 0), c(k, n - k)), ks, ns, SIMPLIFY = FALSE))
  g <- factor(rep(seq_along(ns), ns))
  ms <- summary(aov(y ~ g))[[1]][["Mean Sq"]]
  n <- sum(ns); C <- length(ns)
  n0 <- (n - sum(ns^2) / n) / (C - 1)
  rho <- (ms[1] - ms[2]) / (ms[1] + (n0 - 1) * ms[2])
  neff <- n / (1 + (n / C - 1) * max(rho, 0))
  ci <- wilson_roots(sum(ks) / n, neff, 0.95)
  list(ks = paste(ks, collapse = " "), ns = paste(ns, collapse = " "),
       rho = rho, neff = neff, lo = ci[1], hi = ci[2])
}
emit("clustered", rows(list(
  clustered(c(9, 4), c(10, 10)),
  clustered(c(10, 0, 10, 0, 5), c(10, 10, 10, 10, 10)),
  clustered(c(3, 3, 3, 3), c(6, 6, 6, 6)),
  clustered(c(1, 7, 20, 2, 0), c(3, 9, 41, 2, 5)),
  clustered(c(1, 1, 0, 1), c(1, 1, 1, 7)),
  clustered(c(88, 90, 71, 0, 90, 45), c(90, 90, 90, 90, 90, 90)),
  clustered(c(0, 0, 1), c(30, 30, 30)))))
