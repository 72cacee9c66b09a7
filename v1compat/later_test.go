package v1compat

import (
	"fmt"
	"testing"

	"partnerapi/v2/op"
)

// TestLaterFields verifies that the fields of v1 that need a later release are found, by what is declared of v2's fields.
func TestLaterFields(t *testing.T) {
	t.Parallel()
	for release, want := range map[op.Release]string{
		op.V2_0: "clients [phishing_click_rate_last_year phishing_click_rate_total]",
		op.V2_3: "clients [phishing_click_rate_last_year phishing_click_rate_total] " +
			"users [phishing_click_rate_last_year phishing_click_rate_total] reports [updated_at] download-report [updated_at]",
		op.Latest: "",
	} {
		later, err := Declare(Config{}).LaterFields(release)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for i, l := range later {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprint(l.ID, " ", l.Fields)
		}
		if got != want {
			t.Errorf("%v lacks\n%s\nnot\n%s", release, got, want)
		}
	}
}
