// Package harness runs a benchmark: it turns settings and a dataset into a
// plan, the plan into trials, and each trial into a row.
//
//   - [Config] holds every setting of a run. The command line's flags, the keys
//     of an experiment file, the JSON Schema, the settings reference and the
//     difference that a refused resume prints all come from its one table.
//   - [NewPlan] crosses cases, arms and epochs, counts what does not apply, and
//     orders the trials so that the arms of one case stand together.
//   - [Experiment.Run] works through a plan on a [Pool] of workers, hands each
//     finished trial to a journal, and can be stopped and resumed at any moment.
//     A rejudge, package attack and the worker of a queue use the same pool.
//   - A profile makes its trials by the sessions of an agent; the profile text, that
//     of `memtox detect`, by showing texts to a Memory.
//   - Package score, below this one, says what a trial showed.
//
// A trial depends on its case, agent, defense, model, epoch and the run's seed,
// and on nothing else: not on the order, the number of workers, or which other
// trials run.
package harness
