package stats

import (
	"cmp"
	"math"
)

// DefaultPower is the power used when a power is zero.
const DefaultPower = 0.8

// PairedPower returns the probability that a two-sided test at 1−level on n
// pairs finds a true difference delta between two arms that differ on the share
// discordance of cases. n need not be whole: with template families it is the
// effective number of cases. ok is false for n ≤ 0 and for differences that
// such arms cannot have (|delta| > discordance).
//
// Source: R. J. Connor (1987), Sample size for testing differences in
// proportions for the paired-sample design, Biometrics 43:207–211.
func PairedPower(n, discordance, delta, level float64) (power float64, ok bool) {
	delta = math.Abs(delta)
	level, ws := checkLevel(level)
	if len(ws) > 0 || !(n > 0) || math.IsInf(n, 0) || !(discordance > 0 && discordance <= 1) || !(delta <= discordance) {
		return 0, false
	}
	shift := delta*math.Sqrt(n) - criticalZ(level)*math.Sqrt(discordance)
	spread := math.Sqrt(discordance - delta*delta)
	if spread == 0 { // every case differs, all the same way
		if shift > 0 {
			return 1, true
		}
		return 0, true
	}
	return normalTail(-shift / spread), true
}

// MinimumDetectableEffect returns the smallest true difference of rates that n
// pairs find with the given power, by [PairedPower]; 0.088 for 100 pairs, 10%
// discordance and 80% power. A zero power stands for [DefaultPower]. ok is
// false where no difference that such arms can have is found, or an argument is
// out of range.
func MinimumDetectableEffect(n, discordance, power, level float64) (delta float64, ok bool) {
	power = cmp.Or(power, DefaultPower)
	if best, ok := PairedPower(n, discordance, discordance, level); !ok || !(power > 0 && power < 1) || best < power {
		return 0, false
	}
	lo, hi := 0.0, discordance
	for range 100 { // power rises with delta
		mid := lo + (hi-lo)/2
		if p, _ := PairedPower(n, discordance, mid, level); p < power {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi, true
}

// normalTail is the probability of a standard normal above z.
func normalTail(z float64) float64 { return 0.5 * math.Erfc(z/math.Sqrt2) }
