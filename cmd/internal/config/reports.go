package config

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"

	"partnerapi/platform/report"
)

// FontFlag selects a font of PDFs in addition to the built-in font.
type FontFlag struct {
	ReportFont string `name:"report-font" type:"path" placeholder:"FILE" help:"TrueType font (.ttf) that PDF reports use for scripts other than Latin, Greek and Cyrillic."`
}

// Renderer returns the renderer of reports.
func (f FontFlag) Renderer() (*report.Renderer, error) {
	if f.ReportFont == "" {
		return report.NewRenderer(nil), nil
	}
	font, err := report.LoadFont(f.ReportFont)
	if err != nil {
		return nil, fmt.Errorf("--report-font: %w", err)
	}
	return report.NewRenderer(font), nil
}

// StoreFlag selects the store of report files.
type StoreFlag struct {
	ReportStore string `name:"report-store" placeholder:"URL" help:"Location of report files: file:///path, s3://bucket?region=…, gs://bucket or azblob://container. Default: the reports folder in --data-dir, which suits a single machine."`
}

// Folder returns the local folder of the store; isLocal is false if the store is remote.
func (f StoreFlag) Folder(dataDir string) (dir string, isLocal bool) {
	if f.ReportStore == "" {
		return filepath.Join(dataDir, "reports"), true
	}
	u, err := url.Parse(f.ReportStore)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return filepath.FromSlash(u.Path), true
}

// OpenStore opens the store of reports.
func (f StoreFlag) OpenStore(ctx context.Context, dataDir string, log *slog.Logger) (*report.Store, error) {
	flag := "--report-store"
	if f.ReportStore == "" { // the files are in the data directory
		flag = "--data-dir"
	}
	store, err := report.OpenStore(ctx, f.ReportStore, filepath.Join(dataDir, "reports"), log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return store, nil
}
