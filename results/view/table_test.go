package view

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
)

// A filter of yes and no is of a column that holds that, and a column of the table is
// one of the rows.
func TestColumnsAreOfTheirKind(t *testing.T) {
	kinds := map[string]reflect.Kind{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[results.Trial]()) {
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		if kinds[name] = f.Type.Kind(); f.Type.Kind() == reflect.Pointer {
			kinds[name] = f.Type.Elem().Kind()
		}
	}
	for _, c := range allColumns {
		want := []reflect.Kind{reflect.Int32, reflect.Int64}
		switch {
		case slices.Contains(textColumns, c):
			want = []reflect.Kind{reflect.String}
		case slices.Contains(flagColumns, c):
			want = []reflect.Kind{reflect.Bool}
		}
		if !slices.Contains(want, kinds[c]) {
			t.Errorf("%s is %v", c, kinds[c])
		}
	}
}
