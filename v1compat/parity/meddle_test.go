package parity

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// rearranged is a body whose member of that name, an array of two or more, is changed.
func rearranged(body, name string, change func([]jsontext.Value) []jsontext.Value) string {
	var all map[string]jsontext.Value
	if json.Unmarshal([]byte(body), &all) != nil || all[name] == nil {
		return body
	}
	var list []jsontext.Value
	if json.Unmarshal(all[name], &list) != nil || len(list) < 2 {
		return body
	}
	all[name], _ = json.Marshal(change(list))
	text, _ := json.Marshal(all, json.Deterministic(true))
	return string(text)
}

func dropFirst(body, name string) string {
	return rearranged(body, name, func(l []jsontext.Value) []jsontext.Value { return l[1:] })
}

func repeatFirst(body, name string) string {
	return rearranged(body, name, func(l []jsontext.Value) []jsontext.Value { return append(l, l[0]) })
}

func turn(body, name string) string {
	return rearranged(body, name, func(l []jsontext.Value) []jsontext.Value {
		slices.Reverse(l)
		return l
	})
}
