// Package doccheck runs what the Markdown pages of the repository show, so that
// they cannot drift from the program.
//
// A fenced block with the info string "sh" is a list of commands: each line is
// run with the memtox of this tree on the PATH, in a folder that the page's own
// files are written to. A block with file=NAME in its info string is such a
// file; Go files are vetted and tested as a module of somebody who imports
// memtox. Other blocks are only read.
//
// What CONTRIBUTING.md says of the repository is done in a copy of it: a block with
// tree=PATH is a file there, one with insert=PATH after=TEXT is put behind the line
// that holds the text, and commands of a block "sh tree" are run there.
package doccheck
