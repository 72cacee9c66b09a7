// Command telegraf is Telegraf with only the plugins of the guide's configuration. The full program has several hundred
// plugins and takes many minutes to compile. The command collects once, as telegraf --once does:
//
//	telegraf CONFIGURATION
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/influxdata/telegraf/agent"
	"github.com/influxdata/telegraf/config"
	_ "github.com/influxdata/telegraf/plugins/inputs/http"
	_ "github.com/influxdata/telegraf/plugins/outputs/file"
	_ "github.com/influxdata/telegraf/plugins/parsers/json_v2"
	_ "github.com/influxdata/telegraf/plugins/serializers/influx"
	_ "github.com/influxdata/telegraf/plugins/serializers/json"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: telegraf CONFIGURATION")
		os.Exit(2)
	}
	if err := collect(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// collect gathers from all inputs once, and writes the metrics to the outputs.
func collect(file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	settings := config.NewConfig()
	if err := settings.LoadConfig(file); err != nil {
		return err
	}
	return agent.NewAgent(settings).Once(ctx, 0)
}
