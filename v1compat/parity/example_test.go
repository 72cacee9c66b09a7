package parity_test

import (
	"github.com/go-json-experiment/json/jsontext"
	"os"

	"partnerapi/v1compat/parity"
)

// A report says each difference once, with the commands that show it.
func ExampleReport_WriteText() {
	r := &parity.Report{Operations: []*parity.Operation{{
		Operation: "GET /v1/clients", Compared: 12, Equal: 11, Different: 1,
		Differences: []parity.Difference{{Field: "name", V1: jsontext.Value(`"Acme"`), V2: jsontext.Value(`"Acme Ltd"`), Request: "curl …"}},
	}}}
	if err := r.WriteText(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// OPERATION        COMPARED  EQUAL  EXPLAINED  DIFFERENT
	// GET /v1/clients  12        11     0          1
	//
	// GET /v1/clients: name
	//   v1: "Acme"
	//   v2: "Acme Ltd"
	//   curl …
}
