package config

import (
	"fmt"

	"partnerapi/cmd/internal/telemetry"
	"partnerapi/platform/directory"
)

// DirectoryFlags say where directories are reached.
type DirectoryFlags struct {
	GraphURL  string `name:"microsoft-graph-url" placeholder:"URL" help:"Where Microsoft Graph is, without a version: for national clouds. Default: https://graph.microsoft.com."`
	LoginURL  string `name:"microsoft-login-url" placeholder:"URL" help:"Where Microsoft gives tokens: for national clouds. Default: https://login.microsoftonline.com."`
	GoogleURL string `name:"google-url" placeholder:"URL" help:"Where Google's Admin SDK is. Default: https://admin.googleapis.com."`
}

// Connector is what reads the directories.
func (f DirectoryFlags) Connector(traces *telemetry.Telemetry) directory.Connect {
	return directory.NewConnect(directory.Endpoints{Graph: f.GraphURL, Login: f.LoginURL, Google: f.GoogleURL}, nil,
		directory.WithTransport(traces.Transport))
}

// validateEndpoints refuses addresses that no directory can be reached at.
func (f DirectoryFlags) validateEndpoints() error {
	for _, flag := range []struct{ name, address string }{
		{"--microsoft-graph-url", f.GraphURL}, {"--microsoft-login-url", f.LoginURL}, {"--google-url", f.GoogleURL},
	} {
		if flag.address == "" {
			continue
		}
		if err := directory.CheckEndpoint(flag.address); err != nil {
			return fmt.Errorf("%s: %w", flag.name, err)
		}
	}
	return nil
}
