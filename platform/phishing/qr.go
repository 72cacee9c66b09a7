package phishing

import (
	"bytes"
	"image/png"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"

	"partnerapi/platform/mail"
)

// qrPlaceholder is the placeholder for the URL of a QR code, and qrFile the name of its picture.
const qrPlaceholder, qrFile = "qr_code", "code.png"

// qrSize is the width and height of the picture of a QR code in pixels, twice that of the service's own template.
const qrSize = 370

// pictures returns the pictures that the HTML of a template shows from within the email: the QR code of a URL, if the HTML
// has its placeholder.
func pictures(body, url string) ([]mail.File, error) {
	for _, found := range placeholder.FindAllStringSubmatch(body, -1) {
		if found[1] != qrPlaceholder {
			continue
		}
		code, err := qr.Encode(url, qr.M, qr.Auto)
		if err == nil {
			code, err = barcode.Scale(code, qrSize, qrSize)
		}
		if err != nil {
			return nil, err
		}
		var picture bytes.Buffer
		err = png.Encode(&picture, code)
		return []mail.File{{Name: qrFile, Type: "image/png", Data: picture.Bytes(), Inline: true}}, err
	}
	return nil, nil
}
