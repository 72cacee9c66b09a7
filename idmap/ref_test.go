package idmap

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"partnerapi/domain"

	strict "github.com/go-json-experiment/json"
)

// numerals are texts, and the numbers that a Ref reads in them; 0 where it refuses them.
var numerals = map[string]int64{
	"1": 1, "7": 7, "10": 10, "2147483647": 2147483647,
	"2147483648": 0, "9999999999": 0, "18446744073709551617": 0, // the last is 1 above 64 bits
	"0": 0, "-0": 0, "-7": 0, "+7": 0, "007": 0, "7.0": 0, "7.5": 0, "1e3": 0, "1E3": 0, "0x7": 0, "1_000": 0,
	" 7": 0, "7 ": 0, "٧": 0, "": 0, "seven": 0, "true": 0, "{}": 0, "[7]": 0,
}

func TestRefText(t *testing.T) {
	t.Parallel()
	for numeral, number := range numerals {
		ref, text := Ref[domain.ClientKind]{Number: 5}, TextRef[domain.ReportKind]{Number: 5}
		for _, err := range []error{ref.UnmarshalText([]byte(numeral)), text.UnmarshalText([]byte(numeral))} {
			if (err == nil) != (number != 0) || err != nil && !errors.Is(err, ErrNumber) {
				t.Errorf("%q: %v", numeral, err)
			}
		}
		if number != 0 && (ref.Number != number || text.Number != number) {
			t.Errorf("%q is %d and %d", numeral, ref.Number, text.Number)
		}
	}
}

func TestRefJSON(t *testing.T) {
	t.Parallel()
	type wire struct {
		Client Ref[domain.ClientKind]     `json:"client"`
		Report TextRef[domain.ReportKind] `json:"report"`
		Group  *Ref[domain.GroupKind]     `json:"group"`
	}
	decoders := map[string]func([]byte, any) error{
		"encoding/json": json.Unmarshal,
		"experiment":    func(data []byte, v any) error { return strict.Unmarshal(data, v) },
	}
	encoders := map[string]func(any) ([]byte, error){
		"encoding/json": json.Marshal,
		"experiment":    func(v any) ([]byte, error) { return strict.Marshal(v) },
	}
	for name, decode := range decoders {
		for numeral, number := range numerals {
			if strings.TrimSpace(numeral) != numeral {
				continue // space around a JSON value is not part of it
			}
			var got wire
			err := decode([]byte(`{"client":`+numeral+`,"report":"`+numeral+`"}`), &got)
			if (err == nil) != (number != 0) || err == nil && (got.Client.Number != number || got.Report.Number != number) {
				t.Errorf("%s: %s is %+v, %v", name, numeral, got, err)
			}
		}
		for _, body := range []string{
			`{"client":"7"}`, `{"report":7}`, `{"client":7.0}`, `{"client":[7]}`, `{"report":"\u0037"}`, `{"group":"7"}`,
		} {
			if err := decode([]byte(body), new(wire)); err == nil {
				t.Errorf("%s takes %s", name, body)
			}
		}
		var got wire
		if err := decode([]byte(`{"client":null,"report":null,"group":null}`), &got); err != nil || got != (wire{}) {
			t.Errorf("%s: null is %+v, %v", name, got, err)
		}
	}
	for name, encode := range encoders {
		value := wire{
			Client: Ref[domain.ClientKind]{Number: 7}, Report: TextRef[domain.ReportKind]{Number: 8},
			Group: &Ref[domain.GroupKind]{},
		}
		if got, err := encode(value); err != nil || string(got) != `{"client":7,"report":"8","group":0}` {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		value.Client = RefTo(domain.ClientID(object(1)))
		if got, err := encode(value); err == nil {
			t.Errorf("%s: a client whose number was not looked up is %s", name, got)
		}
		if got, err := encode(TextRef[domain.ReportKind]{ID: domain.ReportID(object(1))}); err == nil {
			t.Errorf("%s: a report whose number was not looked up is %s", name, got)
		}
	}
}

// What a Ref reads, it writes as it was: there is one text for each number.
func FuzzRef(f *testing.F) {
	for numeral := range numerals {
		f.Add(numeral)
		f.Add(`"` + numeral + `"`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var ref Ref[domain.ClientKind]
		if err := json.Unmarshal([]byte(text), &ref); err == nil && ref.Number != 0 {
			written, err := json.Marshal(ref)
			var again Ref[domain.ClientKind]
			if err != nil || again.UnmarshalText(written) != nil || again != ref ||
				ref.Number > MaxNumber || ref.Number < 1 {
				t.Errorf("%q is read as %+v, written as %s, %v", text, ref, written, err)
			}
		}
		if err := ref.UnmarshalJSON([]byte(text)); err == nil && text != "null" {
			if written, err := json.Marshal(ref); err != nil || string(written) != text {
				t.Errorf("%q is written as %s, %v", text, written, err)
			}
		}
		var quoted TextRef[domain.ReportKind]
		if err := quoted.UnmarshalJSON([]byte(text)); err == nil && text != "null" {
			if written, err := json.Marshal(quoted); err != nil || string(written) != text {
				t.Errorf("%q is written as %s, %v", text, written, err)
			}
		}
	})
}
