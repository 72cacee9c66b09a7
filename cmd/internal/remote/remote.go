// Package remote has the commands that call a running service, and how they do.
package remote

import "errors"

// KeyFlag is the key of a command that calls a service.
type KeyFlag struct {
	Key string `env:"PARTNERAPI_KEY" name:"key" placeholder:"KEY" help:"The API key. Better in the variable: others can see a command line."`
}

// ValidateKey refuses an absent key.
func (f KeyFlag) ValidateKey() error {
	if f.Key == "" {
		return errors.New("no API key: set PARTNERAPI_KEY")
	}
	return nil
}
