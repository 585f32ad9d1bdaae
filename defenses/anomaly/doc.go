// Package anomaly looks for memories that lie where no ordinary memory lies in
// embedding space: far from the centre of their cluster, in a sparse
// neighbourhood, or nearer to another cluster than to their own.
//
// It has two modes. `anomaly:memgar` is memgar's detector as its code really
// behaves ([Memgar]), kept as the baseline to compare with. The default is ours
// ([New]): the same three signals, but each is calibrated on ordinary records by
// leaving each record out in turn, so that the share of false alarms on text
// like the baseline's is the stated one at any dimension. memgar counts the
// point itself among its neighbours when it learns its threshold, and raises
// 30–40% false alarms at dimension 64 and 100% at 384.
//
// Content that is meant to be found looks like ordinary content, so this check
// alone stops little of what a careful attacker writes: of the set that was built
// for it, none (docs/embeddings.md). It is here to be measured.
package anomaly
