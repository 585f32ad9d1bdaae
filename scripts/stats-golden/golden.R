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
grid <- rbind(grid, data.frame(k = c(3, 500000, 3, 999999000, 400000000), n = c(1e6, 1e6, 1e9, 1e9, 1e9)))

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
  neff <- neff * (qnorm(0.975) / qt(0.975, C - 1))^2 # t on C - 1 in place of the normal quantile
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

emit("clopper_pearson", rows(unlist(lapply(c(0.9, 0.95, 0.99), function(level)
  lapply(seq_len(nrow(grid)), function(i) {
    ci <- binom.test(grid$k[i], grid$n[i], conf.level = level)$conf.int
    list(k = grid$k[i], n = grid$n[i], level = level, lo = ci[1], hi = ci[2])
  })), recursive = FALSE)))

# Two arms, same cases ---------------------------------------------------------

# both, only_a, only_b, neither. The first two are the worked examples of
# Fagerland, Lydersen and Laake (2013, 2014).
tables <- list(c(1, 1, 7, 12), c(59, 6, 16, 80), c(0, 0, 0, 5), c(10, 0, 0, 10), c(0, 10, 0, 0),
  c(36, 12, 2, 0), c(3, 4, 4, 9), c(880, 40, 61, 219), c(0, 3, 5, 0), c(90000, 700, 900, 8400),
  c(1, 300, 420, 2), c(20, 0, 6, 1))

wilson <- function(k, n, level) suppressWarnings(prop.test(k, n, conf.level = level, correct = FALSE))$conf.int
emit("paired", rows(unlist(lapply(c(0.9, 0.95), function(level) lapply(tables, function(x) {
  a <- x[1]; b <- x[2]; c <- x[3]; d <- x[4]; n <- sum(x); m <- b + c
  exact <- if (m == 0) 1 else binom.test(b, m)$p.value
  p1 <- (a + b) / n; p2 <- (a + c) / n
  w1 <- wilson(a + b, n, level); w2 <- wilson(a + c, n, level)
  prod <- (a + b) * (c + d) * (a + c) * (b + d)
  det <- a * d - b * c
  phi <- if (prod == 0) 0 else (if (det > n / 2) det - n / 2 else if (det > 0) 0 else det) / sqrt(prod)
  dl1 <- p1 - w1[1]; du1 <- w1[2] - p1; dl2 <- p2 - w2[1]; du2 <- w2[2] - p2
  list(both = a, only_a = b, only_b = c, neither = d, level = level, exact = exact,
       diff = p1 - p2,
       lo = p1 - p2 - sqrt(dl1^2 - 2 * phi * dl1 * du2 + du2^2),
       hi = p1 - p2 + sqrt(du1^2 - 2 * phi * du1 * dl2 + dl2^2))
})), recursive = FALSE)))

emit("independent", rows(lapply(list(c(7, 34, 1, 34), c(56, 70, 48, 80), c(0, 10, 0, 20), c(10, 10, 0, 20),
  c(9, 10, 3, 10), c(880, 1000, 812, 990), c(3, 3, 5, 9), c(1, 1, 0, 1)), function(x) {
  p <- x[1] / x[2]; q <- x[3] / x[4]
  w <- wilson(x[1], x[2], 0.95); v <- wilson(x[3], x[4], 0.95)
  list(ka = x[1], na = x[2], kb = x[3], nb = x[4],
       lo = p - q - sqrt((p - w[1])^2 + (v[2] - q)^2), hi = p - q + sqrt((w[2] - p)^2 + (q - v[1])^2))
})))

# Cluster-robust: the sandwich of the regression on an intercept, by lm. With
# one pair in every cluster t.test must say the same, and the script checks it.
cluster_case <- function(ns, sums, tag) {
  # Any values with these sums will do: the sandwich adds up scores by cluster.
  y <- rep(sums / ns, ns); g <- rep(seq_along(ns), ns)
  fit <- lm(y ~ 1)
  C <- length(ns); n <- sum(ns)
  se <- sqrt(C / (C - 1) * sum(tapply(residuals(fit), g, sum)^2)) / n
  d <- unname(coef(fit))
  if (all(ns == 1)) stopifnot(all.equal(t.test(sums)$stderr, se))
  q <- qt(0.975, C - 1)
  list(tag = tag, ns = paste(ns, collapse = " "), sums = paste(sums, collapse = " "), diff = d, se = se,
       lo = max(-1, d - q * se), hi = min(1, d + q * se))
}
emit("paired_clustered", rows(list(
  cluster_case(c(10, 10, 10), c(3, -1, 2), "three clusters"),
  cluster_case(rep(1, 12), c(1, 0, 0, -1, 1, 1, 0, 0, 1, 0, 1, 0), "singletons"),
  cluster_case(c(5, 40, 2, 13, 9, 30), c(1, 22, -2, 0, 3.5, 11), "unequal"),
  cluster_case(rep(25, 40), ((0:39 * 7) %% 11) - 3, "forty clusters"))))

# All sign flips, written out.
flip_p <- function(sums) {
  signs <- as.matrix(expand.grid(rep(list(c(1, -1)), length(sums))))
  mean(abs(signs %*% sums) >= abs(sum(sums)) - 1e-9)
}
emit("sign_flip", rows(lapply(list(c(3, -1, 2), c(1, 1, 1, 1, 1, 1, 1, -1), c(1, 22, -2, 3.5, 11), c(5), c(2, -2),
  c(0.1, 0.2, 0.3, -0.6, 0.5, 0.4, 0.3, 1.2, 4, 3, 2)), function(s)
  list(sums = paste(s, collapse = " "), p = flip_p(s)))))

emit("adjusted", rows(lapply(list(c(0.01, 0.02, 0.03, 0.04, 0.05), c(0.05, 0.001, 0.8, 0.03, 0.03), c(0.2),
  c(0, 1, 0.5, 0.5, 0.001), c(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
    0.4262, 0.5719, 0.6528, 0.7590, 1)), function(p)
  list(p = paste(p, collapse = " "), holm = paste(sprintf("%.15g", p.adjust(p, "holm")), collapse = " "),
       bh = paste(sprintf("%.15g", p.adjust(p, "BH")), collapse = " ")))))

# Power: Connor's power by pnorm, the smallest difference by uniroot -----------

connor <- function(n, psi, d, level) pnorm((d * sqrt(n) - qnorm(1 - (1 - level) / 2) * sqrt(psi)) / sqrt(psi - d^2))
emit("power", rows(lapply(list(c(100, 0.1, 0.8, 0.95), c(1000, 0.1, 0.8, 0.95), c(50, 0.3, 0.9, 0.95),
  c(3240, 0.05, 0.8, 0.99), c(36.5, 0.5, 0.8, 0.9)), function(x) {
  d <- uniroot(function(d) connor(x[1], x[2], d, x[4]) - x[3], c(1e-9, x[2] * (1 - 1e-12)), tol = 1e-15)$root
  list(n = x[1], discordance = x[2], power = x[3], level = x[4], mde = d, at_half = connor(x[1], x[2], d / 2, x[4]))
})))

# Quantiles ------------------------------------------------------------------

# Ranks (from 1; 0 and n+1 for none) by qbinom.
emit("quantile_ranks", rows(unlist(lapply(c(1, 5, 6, 20, 71, 72, 73, 100, 1000, 1000000), function(n)
  lapply(c(0.5, 0.95, 0.99), function(p) {
    # lower: the largest l with P(B <= l-1) <= 0.025; upper: the smallest u with P(B >= u) <= 0.025
    l <- qbinom(0.025, n, p); while (l > 0 && pbinom(l - 1, n, p) > 0.025) l <- l - 1
    u <- qbinom(0.975, n, p) + 1; while (u <= n && pbinom(u - 1, n, p, lower.tail = FALSE) > 0.025) u <- u + 1
    list(n = n, p = p, lower = abs(l), upper = min(u, n + 1))
  })), recursive = FALSE)))

x <- round(exp((0:199 * 7919 %% 200) / 40) + 0.001 * (0:199), 6)
emit("quantile_values", rows(lapply(c(1, 2, 3, 10, 57, 200), function(n) {
  q <- quantile(x[1:n], c(0.5, 0.95, 0.99), names = FALSE)
  list(x = paste(x[1:n], collapse = " "), p50 = q[1], p95 = q[2], p99 = q[3])
})))

# Scores and judges ------------------------------------------------------------

auc_case <- function(pos, neg) {
  psi <- outer(pos, neg, function(a, b) (a > b) + 0.5 * (a == b))
  area <- mean(psi)
  se <- sqrt(var(rowMeans(psi)) / length(pos) + var(colMeans(psi)) / length(neg))
  l <- qlogis(area) + c(-1, 1) * qnorm(0.975) * se / (area * (1 - area))
  list(pos = paste(pos, collapse = " "), neg = paste(neg, collapse = " "), auc = area, se = se,
       lo = plogis(l[1]), hi = plogis(l[2]))
}
emit("auc", rows(list(
  auc_case(c(0.9, 0.8, 0.7, 0.6, 0.55), c(0.5, 0.65, 0.4, 0.3)),
  auc_case(c(1, 2, 2, 3, 3, 3, 4), c(0, 1, 1, 2, 2, 3)),
  auc_case(((0:59 * 37) %% 101) + 15, ((0:79 * 53) %% 97)),
  auc_case(c(1, 1), c(3, 1, 0)))))

kappa_case <- function(m, level = 0.95) {
  p <- m / sum(m); po <- sum(diag(p)); r <- rowSums(p); c <- colSums(p); pe <- sum(r * c)
  k <- (po - pe) / (1 - pe)
  # Delta method with a numeric gradient of kappa in the cell shares.
  kap <- function(v) { q <- matrix(v, nrow(m)); q <- q / sum(q); e <- sum(rowSums(q) * colSums(q)); (sum(diag(q)) - e) / (1 - e) }
  v <- as.vector(p); h <- 1e-6
  g <- sapply(seq_along(v), function(i) { u <- w <- v; u[i] <- u[i] + h; w[i] <- w[i] - h; (kap(u) - kap(w)) / (2 * h) })
  se <- sqrt((sum(v * g^2) - sum(v * g)^2) / sum(m))
  z <- qnorm(1 - (1 - level) / 2)
  list(size = nrow(m), cells = paste(t(m), collapse = " "), kappa = k, se = se,
       lo = max(-1, k - z * se), hi = min(1, k + z * se))
}
emit("kappa", rows(list(
  kappa_case(matrix(c(7, 7, 2, 3, 2, 8, 3, 7, 1, 5, 4, 9, 2, 8, 9, 14), 4, byrow = TRUE)),
  kappa_case(matrix(c(20, 5, 10, 15), 2, byrow = TRUE)),
  kappa_case(matrix(c(88, 10, 2, 14, 40, 6, 18, 10, 12), 3, byrow = TRUE)),
  kappa_case(matrix(c(980, 1, 2, 17), 2, byrow = TRUE)))))
