package operator

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/template"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/phishing"
)

type allowlistCmd struct {
	database.Flags
	Client    string   `arg:"" help:"The client's ID, UUID or name."`
	SourceIPs []string `name:"mail-source-ips" placeholder:"CIDR,…" help:"Source IP addresses of simulated emails, to include in the text."`
	JSON      bool     `name:"json" env:"-" help:"Print only the values, as a JSON object."`
}

func (allowlistCmd) Help() string {
	return `The text is for the administrators of the client's email system. It lists the senders of all templates, the domain of the links, and the header ` + phishing.HeaderName + `, with the value that the service adds to each simulated email to this client. Run the command again after you import templates, change --public-url, or move the partner to another cell.`
}

// Validate rejects invalid IP addresses.
func (c allowlistCmd) Validate() error {
	if _, err := domain.ParseNetworks(c.SourceIPs); err != nil {
		return fmt.Errorf("--mail-source-ips: %w", err)
	}
	return nil
}

// allowlist is what filters need to know of the simulated emails to a client.
type allowlist struct {
	Client          string          `json:"-"`
	ClientID        domain.ClientID `json:"client_id"`
	SenderDomains   []string        `json:"sender_domains"`
	SenderAddresses []string        `json:"sender_addresses"`
	SourceIPs       []string        `json:"source_ips"`
	LinkDomain      string          `json:"link_domain"`
	HeaderName      string          `json:"header_name"`
	HeaderValue     string          `json:"header_value"`
}

// Run prints what filters of a client must let through, and the steps to do it.
func (c allowlistCmd) Run(ctx context.Context, s cli.Env) error {
	return c.WithClient(ctx, s, c.Client, func(d *db.DB, client db.ClientName) error {
		list, err := c.collect(ctx, d, client)
		if err != nil {
			return err
		}
		if c.JSON {
			return output.JSON(s.Out, list)
		}
		return allowlistText.Execute(s.Out, list)
	})
}

// collect reads the values for a client.
func (c allowlistCmd) collect(ctx context.Context, d *db.DB, client db.ClientName) (allowlist, error) {
	list := allowlist{Client: client.Name, ClientID: client.ID, SourceIPs: append([]string{}, c.SourceIPs...), HeaderName: phishing.HeaderName}
	served, err := d.PublicURL(ctx)
	if err != nil {
		return list, err
	}
	link, err := url.Parse(cmp.Or(served, "http://"+cli.DefaultListen))
	if err != nil {
		return list, err
	}
	list.LinkDomain = link.Hostname()
	if list.SenderAddresses, err = d.TemplateSenders(ctx); err != nil {
		return list, err
	}
	for _, address := range list.SenderAddresses {
		list.SenderDomains = append(list.SenderDomains, address[strings.LastIndexByte(address, '@')+1:])
	}
	slices.Sort(list.SenderDomains)
	list.SenderDomains = slices.Compact(list.SenderDomains)
	secret, err := d.TrackingSecret(ctx)
	list.HeaderValue = phishing.NewTokens(secret).Header(client.ID)
	return list, err
}

// allowlistText is the text of the command. The guide allowlist has the same steps, with the sources: keep them equal.
var allowlistText = template.Must(template.New("allowlist").Parse(`Let simulations through

Client
  {{.Client}} ({{.ClientID}})
Sender domains
{{- range .SenderDomains}}
  {{.}}{{end}}
Sender addresses
{{- range .SenderAddresses}}
  {{.}}{{end}}
Sending IP addresses
{{- range .SourceIPs}}
  {{.}}{{else}}
  (unknown: add --mail-source-ips, or ask the mail server's operator){{end}}
Domain of the links
  {{.LinkDomain}}
Header of each simulated email (treat the value as a secret)
  {{.HeaderName}}: {{.HeaderValue}}

Microsoft 365
  1. Open https://security.microsoft.com/advanceddelivery, and select the tab
     "Phishing simulation", then "Add" or "Edit".
  2. Domain: enter the sender domains above.
  3. Sending IP: enter the sending IP addresses above.
  4. Simulation URLs to allow: not needed for emails. If you enter one, use
     {{.LinkDomain}}/*
  5. Select "Add" or "Save".
  If another filter receives the emails first, turn on Enhanced Filtering for
  Connectors, so that Microsoft 365 sees the sending IP address.

Google Workspace
  1. Open https://admin.google.com, then Apps > Google Workspace > Gmail >
     Spam, phishing and malware, and select the top organization.
  2. Email allowlist: enter the sending IP addresses above.
  3. Spam: add a rule that bypasses spam filters and hides warnings for the
     senders of a list. Add the sender domains above to the list.
  4. Allow up to 24 hours for the change.

Other gateways
  1. Add a rule for inbound emails that matches both the sending IP addresses
     and the header above. A header alone can be copied from an email.
  2. In the rule, skip the filters for spam, phishing and spoofing, and the
     rewriting and scanning of links.
  3. Exclude {{.LinkDomain}} from link scanning, so that scans are not
     counted as opens or clicks.

Send one simulation to yourself and look for the header in the source of the
email. The page /docs/guide/allowlist of the service explains each step.
`))
