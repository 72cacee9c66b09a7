package phishing

import (
	_ "embed"
	"strings"

	"partnerapi/domain"
)

//go:embed networks.txt
var defaultNetworks string

// ParseNetworks reads networks of mail scanners, as addresses or CIDRs. Without any
// it returns the list that comes with the service.
func ParseNetworks(list []string) (domain.Networks, error) {
	if len(list) == 0 {
		for line := range strings.Lines(defaultNetworks) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				list = append(list, line)
			}
		}
	}
	return domain.ParseNetworks(list)
}
