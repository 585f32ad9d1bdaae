package stats

import "math"

// Stratum is a part of the trials that counts for a share of the whole.
type Stratum struct {
	Weight   float64 // not negative; only their proportions count
	Families Families
}

// Share is a weighted rate with its interval.
type Share struct {
	Rate       float64 `json:"rate"`
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	EffectiveN float64 `json:"effective_n"`
	Trials     int     `json:"n"`
}

// Weighted returns the rate Σ wₛ·kₛ/nₛ over strata whose weights add up to 1, with an
// interval that knows that trials of one family resemble each other, also across
// strata: [Wilson]'s on the effective number of trials p(1−p)/V, where
//
//	V = C/(C−1) Σ_f (Σₛ wₛ (k_fs − pₛ n_fs)/nₛ)²
//
// is the linearised variance over the C families, and Student's t on C−1 degrees of
// freedom stands for the normal quantile, as in [ClusteredWilson]. Where V is 0, because
// no two families differ, each family counts as one trial: n_eff = 1/Σ(wₛ²/Cₛ). n_eff is
// never above the number of trials. A stratum without weight or without a trial is left out;
// ok is false where none is left.
//
// Source: C.-E. Särndal, B. Swensson, J. Wretman (1992), Model Assisted Survey
// Sampling, §5.5 and §5.7, for the linearised variance of a weighted sum of ratios.
func Weighted(strata []Stratum, level float64) (s Share, ok bool) {
	level, _ = checkLevel(level)
	total := 0.
	for _, x := range strata {
		if x.trials() > 0 {
			total += x.Weight
		}
	}
	if total <= 0 {
		return Share{Hi: 1}, false
	}
	residuals := map[string]float64{}
	kish := 0.
	for _, x := range strata {
		w, n := x.Weight/total, float64(x.trials())
		if n == 0 || w == 0 {
			continue
		}
		k, families := 0., 0.
		for _, c := range x.Families {
			k += float64(c.K)
			if c.N > 0 {
				families++
			}
		}
		p := k / n
		s.Rate += w * p
		s.Trials += int(n)
		kish += w * w / families
		for f, c := range x.Families {
			residuals[f] += w * (float64(c.K) - p*float64(c.N)) / n
		}
	}
	v := 0.
	for _, r := range residuals {
		v += r * r
	}
	if c := float64(len(residuals)); c > 1 {
		v *= c / (c - 1)
	}
	s.EffectiveN = 1 / kish
	t := 1.
	if spread := s.Rate * (1 - s.Rate); v > 1e-12 && spread > 0 {
		s.EffectiveN, t = spread/v, estimated(level, float64(len(residuals))-1)
	}
	s.EffectiveN = min(math.Max(s.EffectiveN, 1), float64(s.Trials)) * t
	s.Lo, s.Hi = wilson(s.Rate, s.EffectiveN, level)
	return s, true
}

func (s *Stratum) trials() (n int) {
	for _, c := range s.Families {
		n += c.N
	}
	return n
}
