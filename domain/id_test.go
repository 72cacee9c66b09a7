package domain_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"partnerapi/domain"
)

// idVectors are the examples of the TypeID specification.
var idVectors = []struct{ uuid, suffix string }{
	{"00000000-0000-0000-0000-000000000000", "00000000000000000000000000"},
	{"00000000-0000-0000-0000-000000000001", "00000000000000000000000001"},
	{"00000000-0000-0000-0000-00000000000a", "0000000000000000000000000a"},
	{"00000000-0000-0000-0000-000000000010", "0000000000000000000000000g"},
	{"00000000-0000-0000-0000-000000000020", "00000000000000000000000010"},
	{"ffffffff-ffff-ffff-ffff-ffffffffffff", "7zzzzzzzzzzzzzzzzzzzzzzzzz"},
	{"0110c853-1d09-52d8-d73e-1194e95b5f19", "0123456789abcdefghjkmnpqrs"},
	{"01890a5d-ac96-774b-bcce-b302099a8057", "01h455vb4pex5vsknk084sn02q"},
}

func TestIDVectors(t *testing.T) {
	for _, v := range idVectors {
		id, err := domain.ParseUUID[domain.UserKind](v.uuid)
		if err != nil {
			t.Fatalf("ParseUUID(%s): %v", v.uuid, err)
		}
		if got, want := id.String(), "usr_"+v.suffix; got != want {
			t.Errorf("%s is shown as %s, want %s", v.uuid, got, want)
		}
		parsed, err := domain.ParseID[domain.UserKind]("usr_" + v.suffix)
		if err != nil || parsed.UUID() != v.uuid {
			t.Errorf("usr_%s is %s, %v; want %s", v.suffix, parsed.UUID(), err, v.uuid)
		}
		if id.IsZero() != (v.uuid == idVectors[0].uuid) {
			t.Errorf("%s: IsZero() = %v", v.uuid, id.IsZero())
		}
	}
}

func TestIDRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var id, other domain.ClientID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		copy(other[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "other"))
		if parsed, err := domain.ParseID[domain.ClientKind](id.String()); err != nil || parsed != id {
			t.Fatalf("%s is parsed as %s, %v", id, parsed, err)
		}
		if parsed, err := domain.ParseUUID[domain.ClientKind](id.UUID()); err != nil || parsed != id {
			t.Fatalf("%s is parsed as %s, %v", id.UUID(), parsed.UUID(), err)
		}
		if bytes.Compare(id[:], other[:]) != strings.Compare(id.String(), other.String()) {
			t.Fatalf("%s and %s are in another order than their bytes", id, other)
		}
	})
}

func TestIDInTheDatabase(t *testing.T) {
	const uuid = "01890a5d-ac96-774b-bcce-b302099a8057"
	want, err := domain.ParseUUID[domain.ReportKind](uuid)
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []any{uuid, []byte(uuid), want[:]} {
		var got domain.ReportID
		if err := got.Scan(src); err != nil || got != want {
			t.Errorf("Scan(%v) = %v, %v", src, got, err)
		}
	}
	var got domain.ReportID
	for _, src := range []any{nil, int64(1), "rep_01h455vb4pex5vsknk084sn02q", []byte("short")} {
		if err := got.Scan(src); err == nil {
			t.Errorf("Scan(%v) was taken", src)
		}
	}
	if value, err := want.Value(); err != nil || value != uuid {
		t.Errorf("Value() = %v, %v", value, err)
	}
}

func TestPrefixes(t *testing.T) {
	seen := map[string]bool{}
	for noun, c := range map[string]struct {
		id interface {
			Noun() string
			MarshalText() ([]byte, error)
		}
		prefix string
	}{
		"client":               {domain.ClientID{}, "cli_"},
		"user":                 {domain.UserID{}, "usr_"},
		"admin":                {domain.AdminID{}, "adm_"},
		"collection":           {domain.CollectionID{}, "col_"},
		"group":                {domain.GroupID{}, "grp_"},
		"policy":               {domain.PolicyID{}, "pol_"},
		"framework assignment": {domain.FrameworkAssignmentID{}, "fwa_"},
		"report":               {domain.ReportID{}, "rep_"},
		"reported email":       {domain.ReportedEmailID{}, "rpe_"},
		"webhook":              {domain.WebhookID{}, "whk_"},
		"event":                {domain.EventID{}, "evt_"},
		"phishing result":      {domain.ResultID{}, "phr_"},
		"course":               {domain.CourseID{}, "crs_"},
		"template":             {domain.TemplateID{}, "tpl_"},
		"partner":              {domain.PartnerID{}, "par_"},
		"key":                  {domain.KeyID{}, "key_"},
		"invite":               {domain.InviteID{}, "inv_"},
		"message":              {domain.MessageID{}, "msg_"},
	} {
		text, err := c.id.MarshalText()
		if err != nil || string(text) != c.prefix+idVectors[0].suffix || c.id.Noun() != noun {
			t.Errorf("the zero %s is %s of a %s, %v", noun, text, c.id.Noun(), err)
		}
		if seen[c.prefix] {
			t.Errorf("%s is the prefix of two kinds", c.prefix)
		}
		seen[c.prefix] = true
	}
}
