package mcp_test

import (
	"strings"
	"testing"

	"partnerapi/v2/op/mcp"
)

// TestTable: each row has a cell for each column, whatever stands in the row.
func TestTable(t *testing.T) {
	t.Parallel()
	const rows = `[
		{"name":"Zo\u00eb \"Z\"","risk":{"score":12.5,"at":{"day":"x"}},"tags":["b","a"],"on":true,"skipped":{"name":[1,{}]}},
		{"skipped":null,"risk":null,"tags":[],"name":"two\tcells","on":false},
		{"risk":{"score":1e-7,"Score":3,"at":null},"name":"","on":null,"tags":null},
		{"risk":{"b":2,"score":-1200,"a":1e21}}
	]`
	for _, c := range []struct {
		columns []string
		want    string
	}{
		{[]string{"name", "risk.score", "on", "tags"}, "name\trisk.score\ton\ttags\n" +
			"Zoë \"Z\"\t12.5\ttrue\t[\"b\",\"a\"]\n" + `"two\tcells"` + "\t\tfalse\t[]\n\t0.0000001\t\t\n\t-1200\t\t\n"},
		{[]string{"risk", "risk.score", "risk"}, "risk\trisk.score\trisk\n" +
			`{"at":{"day":"x"},"score":12.5}` + "\t12.5\t" + `{"at":{"day":"x"},"score":12.5}` + "\n\t\t\n" +
			`{"Score":3,"at":null,"score":1e-7}` + "\t0.0000001\t" + `{"Score":3,"at":null,"score":1e-7}` + "\n" +
			`{"a":1e+21,"b":2,"score":-1200}` + "\t-1200\t" + `{"a":1e+21,"b":2,"score":-1200}` + "\n"},
		{[]string{"risk.at.day"}, "risk.at.day\nx\n\n\n\n"},
	} {
		if got, err := mcp.Table(rows, c.columns...); err != nil || got != c.want {
			t.Errorf("%q:\n%s%v, want\n%s", c.columns, got, err, c.want)
		}
	}
	for _, wrong := range []string{"null", "{}", `[{"name":1]`, `["name"`} {
		if got, err := mcp.Table(wrong, "name"); err == nil {
			t.Errorf("%s is the table %q", wrong, got)
		}
	}
}

// TestPresent verifies what is left of a value without the members that count as absent, and that the work is in
// proportion to the value, however deeply it is nested: a copy on each level would make 5 GB of the last case.
func TestPresent(t *testing.T) {
	t.Parallel()
	const schema = `{"properties":{"a":{},"b":{"properties":{"x":{},"y":{}},"required":["y"]},"c":{"items":{"properties":{"z":{}}}}},"required":["b"]}`
	deep := strings.Repeat(`{"a":`, 5000) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}", 5000)
	for value, want := range map[string]string{
		`{"a":null,"b":{},"c":[]}`:                                       `{"b":{},"c":[]}`,
		`{"a":"","b":{"x":"","y":""},"c":[{"z":""},null,"",[]]}`:         `{"b":{"y":""},"c":[{},null,"",[]]}`,
		`{ "b" : { "y" : null , "w" : "" , "v" : [ { "u" : null } ] } }`: `{"b":{"w":"","v":[{}]}}`,
		`{"a":1,"a":null,"b":"","\u0061":"\u0041"}`:                      `{"a":1,"b":"","a":"\u0041"}`,
		`null`: `null`, `""`: `""`, `[]`: `[]`, `{}`: `{}`, `12345678901234567890.5`: `12345678901234567890.5`, deep: deep,
	} {
		if got, err := mcp.Present(schema, value); err != nil || got != want {
			t.Errorf("%.100s: got %.100s %v, want %.100s", value, got, err, want)
		}
	}
}
