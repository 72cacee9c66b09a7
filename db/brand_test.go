package db_test

import (
	"context"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

// TestBrand verifies that a brand inherits field by field: a client from its own partner, which inherits from the
// service, and never from another client or partner.
func TestBrand(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	client, sibling := w.AddClient(), w.AddClient()
	other := db.NewID[domain.PartnerKind]()
	w.Add("partners", fixture.Row{"id": other, "name": "Other", "name_key": "other"})
	foreign := db.NewID[domain.ClientKind]()
	w.Add("clients", fixture.Row{"id": foreign, "partner_id": other, "name": "F", "name_key": "f"})

	brand := func(partner, client any, name, color, sender string, logo any) fixture.Row {
		return fixture.Row{
			"id": db.NewID[domain.BrandKind](), "partner_id": partner, "client_id": client, "display_name": name, "accent_color": color,
			"sender_name": sender, "logo": logo, "sender_email": "", "reply_to": "", "support_contact": "", "postal_line": "",
		}
	}
	w.Add("brands",
		brand(nil, nil, "", "#111111", "Service", nil),
		brand(w.Partner, nil, "", "#222222", "", `\x01`),
		brand(nil, client, "Client", "", "", nil),
		brand(nil, foreign, "", "", "", `\x02`),
	)
	for _, tt := range []struct {
		what                      string
		of                        domain.BrandOwner
		name, color, sender, logo string
		nameFrom, logoFrom        domain.BrandSource
	}{
		{"client", domain.BrandOwner{Client: client}, "Client", "#222222", "Service", "\x01", domain.ClientBrand, domain.PartnerBrand},
		{"its sibling", domain.BrandOwner{Client: sibling}, "Partner", "#222222", "Service", "\x01", domain.DefaultBrand, domain.PartnerBrand},
		{"partner", domain.BrandOwner{Partner: w.Partner}, "Partner", "#222222", "Service", "\x01", domain.DefaultBrand, domain.PartnerBrand},
		{"other partner", domain.BrandOwner{Partner: other}, "Other", "#111111", "Service", "", domain.DefaultBrand, domain.NoBrand},
		{"its client", domain.BrandOwner{Client: foreign}, "Other", "#111111", "Service", "\x02", domain.DefaultBrand, domain.ClientBrand},
		{"a client is not its caller's partner's", domain.BrandOwner{Partner: w.Partner, Client: foreign}, "Other", "#111111", "Service", "\x02", domain.DefaultBrand, domain.ClientBrand},
		{"service", domain.BrandOwner{}, "", "#111111", "Service", "", domain.NoBrand, domain.NoBrand},
	} {
		got, err := w.Brand(t.Context(), tt.of)
		if err != nil || got.DisplayName != tt.name || string(got.AccentColor) != tt.color || got.SenderName != tt.sender || string(got.Logo) != tt.logo ||
			got.Sources["display_name"] != tt.nameFrom || got.Sources["logo"] != tt.logoFrom {
			t.Errorf("%s: got %+v, %v", tt.what, got, err)
		}
	}
	for _, of := range []domain.BrandOwner{{Partner: db.NewID[domain.PartnerKind]()}, {Client: db.NewID[domain.ClientKind]()}} {
		if _, err := w.Brand(t.Context(), of); !domain.IsCode(err, domain.NotFound) {
			t.Errorf("the brand of nothing: got %v, want NotFound", err)
		}
	}

	for _, of := range []domain.BrandOwner{{Client: client}, {Partner: w.Partner}, {}} {
		clear := func() error {
			return w.Change(t.Context(), func(ctx context.Context, c *db.Change) error { return c.ClearBrand(ctx, of) })
		}
		if err := clear(); err != nil {
			t.Errorf("%v: %v", of, err)
		}
		if err := clear(); !domain.IsCode(err, domain.NotFound) {
			t.Errorf("%v, again: got %v, want NotFound", of, err)
		}
	}
	if n := w.Number("SELECT count(*) FROM brands"); n != 1 {
		t.Errorf("got %d brands, want the other partner's", n)
	}
}
