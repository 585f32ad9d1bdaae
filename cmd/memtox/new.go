package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
)

func newDatasetsNew(env *Env, c *cobra.Command) action {
	var s attacks.Skeleton
	class := choiceFlag(c, "class", datasets.PolicyFact, "form of the claim (memtox attacks list)", datasets.Classes()...)
	known := choiceFlag(c, "known", "", "where the right value stands: memory (the default), world, user, or task where the "+
		"claim adds a step", attacks.SkeletonKnown()...)
	twin := choiceFlag(c, "twin", "", "what makes the twin benign: said_by, kept, or truth with --known world",
		attacks.SkeletonTwins()...)
	c.Flags().BoolVar(&s.Benign, "benign", false, "a benign family of its own, without an attack")
	return func(_ context.Context, args []string) error {
		s.Class, s.Known, s.Twin = *class, *known, *twin
		data, err := s.File(args[0])
		if err != nil {
			return err
		}
		f, err := os.OpenFile(env.path(args[0]), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		switch {
		case errors.Is(err, fs.ErrExist):
			return &settings.Problem{Where: args[0], What: "exists already", Hint: "choose another name: nothing is overwritten"}
		case err != nil:
			return fmt.Errorf("writing the family: %w", err)
		}
		_, err = f.Write(data)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("writing the family: %w", err)
		}
		env.say("%s is a family that works; make it yours, and check it with memtox datasets validate %[1]s", args[0])
		return nil
	}
}
