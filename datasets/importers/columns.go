package importers

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fromGo turns what the Parquet reader makes of a row into a value.
func fromGo(of any) value {
	v := reflect.ValueOf(of)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case !v.IsValid() || v.Kind() == reflect.Pointer:
		return value{}
	case v.Kind() == reflect.Bool:
		return value{kind: boolean, text: strconv.FormatBool(v.Bool())}
	case v.CanInt():
		return value{kind: number, text: strconv.FormatInt(v.Int(), 10)}
	case v.CanUint():
		return value{kind: number, text: strconv.FormatUint(v.Uint(), 10)}
	case v.CanFloat():
		return value{kind: number, text: strconv.FormatFloat(v.Float(), 'g', -1, 64)}
	case v.Kind() == reflect.String:
		return textValue(v.String())
	case v.Kind() == reflect.Map:
		out := value{kind: object}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, k := range keys {
			out.names, out.items = append(out.names, fmt.Sprint(k)), append(out.items, fromGo(v.MapIndex(k).Interface()))
		}
		return out
	case v.Kind() != reflect.Slice && v.Kind() != reflect.Array:
		return textValue(fmt.Sprint(of))
	case v.Type().Elem().Kind() == reflect.Uint8:
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return textValue(string(b))
	}
	out := value{kind: list}
	for i := range v.Len() {
		out.items = append(out.items, fromGo(v.Index(i).Interface()))
	}
	return out
}

// textValue is a text, or bytes that only the fields that are made of them refuse:
// a column of pictures beside the texts does no harm.
func textValue(s string) value {
	if !utf8.ValidString(s) {
		return value{kind: binary, text: s}
	}
	return value{kind: str, text: s}
}
