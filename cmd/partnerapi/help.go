package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// examples are command lines of the commands, by their paths, as help shows them. An extension has its own.
var examples = map[string][]string{
	"serve": {
		"serve --demo --release latest",
		"serve --no-work --release latest --database-url postgres://partnerapi@db.example.com/partnerapi --public-url https://api.example.com",
	},
	"work":            {"work --database-url postgres://partnerapi@db.example.com/partnerapi"},
	"doctor":          {"doctor", "doctor --recount"},
	"health":          {"health https://api.example.com"},
	"migrate":         {"migrate --dry-run", "migrate"},
	"partners create": {"partners create 'Tidewater MSP'"},
	"partners list":   {"partners list --json"},
	"keys create": {
		"keys create --partner 'Northlight MSP' --name 'PSA sync' --clients all --scopes read,write",
		"keys create --partner 'Northlight MSP' --name Report --clients 'Hillside Dental' --scopes read --expires 2028-01-31",
	},
	"keys list":   {"keys list"},
	"keys revoke": {"keys revoke pk_1cY4nTq8Zb"},
	"move partner": {
		"move partner 'Tidewater MSP' --to postgres://partnerapi@cell01.example.com/partnerapi --dry-run",
		"move partner 'Tidewater MSP' --to postgres://partnerapi@cell01.example.com/partnerapi",
	},
	"move status":      {"move status"},
	"move cancel":      {"move cancel 'Fabrikam IT' --to postgres://partnerapi@cell01.example.com/partnerapi"},
	"audit":            {"audit --client 'Hillside Dental' --since 36h", "audit --key command --json"},
	"mail failed":      {"mail failed --since 36h"},
	"mail retry":       {"mail retry --all --since 36h"},
	"mail enable":      {"mail enable 'Hillside Dental' monthly-report"},
	"mail disable":     {"mail disable 'Hillside Dental' phish-reminder"},
	"mail switches":    {"mail switches 'Hillside Dental'"},
	"seed":             {"seed --clients 5 --users 100"},
	"breaches import":  {"breaches import breaches.json"},
	"catalogue export": {"catalogue export > catalogue.ndjson"},
	"catalogue import": {"catalogue import catalogue.ndjson"},
	"export":           {"export platform.ndjson", "export --partner 'Northlight MSP' --signals signals.ndjson platform.ndjson"},
	"import":           {"import --dry-run platform.ndjson", "import --errors refused.ndjson platform.ndjson"},
	"ingest":           {"ingest signals.ndjson"},
	"reports make":     {"reports make 'Hillside Dental' executive_summary --out summary.pdf"},
	"templates import": {"templates import --language en --category invoices templates.json"},
	"templates enable": {"templates enable 'Hillside Dental' invoices"},
	"directory connect <client> microsoft": {
		"directory connect 'Hillside Dental' microsoft --tenant hillside.example --app-id 6a1f4a52-52f0-4a5e-9d6a-0c1c2f9e7b11 --secret-file secret.txt",
	},
	"directory connect <client> google": {
		"directory connect 'Lakeside Clinic' google --credentials-file account.json --admin admin@example.com",
	},
	"directory disconnect":  {"directory disconnect 'Hillside Dental'"},
	"directory list":        {"directory list"},
	"directory run":         {"directory run 'Lakeside Clinic'"},
	"webhooks list":         {"webhooks list --partner 'Northlight MSP'"},
	"webhooks pause":        {"webhooks pause whk_01hrcssyngez2rfxjq1vdbavap"},
	"webhooks resume":       {"webhooks resume whk_01hrcssyngez2rfxjq1vdbavap"},
	"webhooks deliveries":   {"webhooks deliveries whk_01hrcssyngez2rfxjq1vdbavap --status failed"},
	"webhooks listen":       {"webhooks listen --url https://api.example.com --forward-to http://localhost:3000/hook"},
	"openapi":               {"openapi v2 --release latest"},
	"mcp":                   {"mcp --url https://api.example.com --read-only"},
	"version":               {"version"},
	"completion":            {"completion bash"},
	"encryption-key new":    {"encryption-key new"},
	"encryption-key rotate": {"encryption-key rotate --encryption-key file:encryption.key"},
}

// groups are the flags that help shows last.
var groups = []kong.Group{
	{Key: "database", Title: "Flags of the database, or variables such as PARTNERAPI_DATABASE_URL:"},
	{Key: "all", Title: "Flags of all commands:"},
}

// briefHelp returns the help of a flag: the text of its tag brief, or else the usual help.
func briefHelp(flag *kong.Value) string {
	if brief := flag.Tag.Get("brief"); brief != "" {
		return brief
	}
	return kong.DefaultHelpValueFormatter(flag)
}

// addExamples adds the examples to the help of the commands.
func addExamples(to *kong.Application) {
	to.HelpFlag.Group = &groups[1]
	for _, command := range to.Leaves(true) {
		lines := examples[command.Path()]
		for _, x := range extensions {
			lines = append(lines, x.Examples[command.Path()]...)
		}
		if len(lines) > 0 {
			command.Detail += "\n\nExamples:\n\n\tpartnerapi " + strings.Join(lines, "\n\tpartnerapi ")
		}
	}
}
