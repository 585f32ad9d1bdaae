package external

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/remote"
)

// Register adds the defenses exec, http and https.
func Register(r *defenses.Registry) {
	all := []defenses.Place{defenses.Input, defenses.Write, defenses.Read, defenses.Act}
	r.Register(defenses.Info{
		Name: "exec", Argument: "COMMAND", Screens: all,
		Idea: "any program that answers JSON Lines on its standard input and output; it screens what it says it answers",
		Cost: "the program's own, and the way to it and back, which is reported apart",
	}, func(argument string, env defenses.Env) (defenses.Defense, error) { return NewExec(argument, env) })
	for _, scheme := range []string{"http", "https"} {
		r.Register(defenses.Info{
			Name: scheme, Argument: "URL", Screens: all,
			Idea: "any service that answers the same messages as POST requests: a guard, or a classifier",
			Cost: "the service's own, and the way to it and back, which is reported apart",
		}, func(argument string, env defenses.Env) (defenses.Defense, error) {
			// Both http://HOST/PATH and http:https://HOST/PATH name an address.
			if strings.HasPrefix(argument, "//") {
				argument = scheme + ":" + argument
			}
			return NewHTTP(argument, env)
		})
	}
}

// OwnerVariable is the environment variable with the token of a guard's owner. A
// program is handed a fresh one, a service must have been told ours.
const OwnerVariable = "MEMTOX_GUARD_OWNER"

// NewExec returns the defense of a program. The program is started when it is
// greeted, or when the first trial opens.
func NewExec(command string, env defenses.Env) (defenses.Remote, error) {
	if _, err := remote.Words(command); err != nil {
		return nil, err
	}
	environment, redact, err := remote.Environment(env.Lookup, env.PassEnv)
	if err != nil {
		return nil, err
	}
	owner := remote.NewSecret(rand.Text())
	environment = append(environment, OwnerVariable+"="+owner.Reveal())
	o := remote.ProcessOptions{Command: command, Dir: env.Dir, Env: environment, Redact: redact.With(owner)}
	g := newGuard("the guard", env.Timeout, func(context.Context) (peer, error) { return startProgram(o) })
	g.owner = owner
	return g, nil
}

// NewHTTP returns the defense of a service. Its tokens are taken from the
// environment variables [TokenVariable] and [OwnerVariable], if they are set.
func NewHTTP(address string, env defenses.Env) (defenses.Remote, error) {
	lookup := env.Lookup
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	token, _, err := remote.Key(lookup, nil, "", TokenVariable)
	if err != nil {
		return nil, err
	}
	owner, _, err := remote.Key(lookup, nil, "", OwnerVariable)
	if err != nil {
		return nil, err
	}
	u, err := checkURL(address, token, owner)
	if err != nil {
		return nil, fmt.Errorf("the address of the guard: %w", err)
	}
	g := newGuard("the guard at "+u.Host, env.Timeout, func(context.Context) (peer, error) {
		return newService(u, token, owner, env.Timeout), nil
	})
	g.owner = owner
	return g, nil
}
