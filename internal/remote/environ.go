package remote

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// basics are the variables that a program needs to start at all. Everything
// else, keys above all, reaches it only by name.
func basics() []string {
	names := []string{"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT", "SystemDrive", "TEMP", "TMP", "PATHEXT", "COMSPEC", "USERPROFILE", "APPDATA",
			"LOCALAPPDATA")
	}
	return names
}

// Environment is the environment of a child: the few variables that any program
// needs (PATH, HOME, the language, the folder for temporary files) and those
// that the user names. lookup reads ours; nil knows no variable. The second
// result removes the values that were named, which may be keys, from texts.
func Environment(lookup func(string) (string, bool), named []string) ([]string, Redactor, error) {
	var env []string
	var secrets []Secret
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	for _, name := range basics() {
		if v, ok := lookup(name); ok && !slices.Contains(named, name) {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range named {
		if name == "" || strings.ContainsAny(name, "=\x00 ") {
			return nil, Redactor{}, fmt.Errorf("%q cannot be the name of an environment variable", name)
		}
		v, ok := lookup(name)
		if !ok {
			return nil, Redactor{}, fmt.Errorf("the environment has no variable %s to hand on: set it, or take it out of "+
				"pass_env", name)
		}
		env = append(env, name+"="+v)
		secrets = append(secrets, NewSecret(v))
	}
	return env, Redactor{}.With(secrets...), nil
}
