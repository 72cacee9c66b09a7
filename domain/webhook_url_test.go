package domain_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"partnerapi/domain"
)

// TestSameWebhookServer compares the servers of URLs, each valid, as deliveries connect to them.
func TestSameWebhookServer(t *testing.T) {
	t.Parallel()
	const url = "https://example.com/hook"
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{url, url, true}, {url, "https://example.com", true}, {url, "HTTPS://EXAMPLE.COM:443/?x", true}, {url, "https://example.com./hook", true},
		{"https://bücher.example", "https://XN--BCHER-KVA.example:443", true}, {"https://BÜCHER.example", "https://bücher.example.", true},
		{"https://例え。テスト", "https://例え.テスト", true}, {"https://ＥＸＡＭＰＬＥ.com", url, true},
		{"https://[::1]:8443", "https://[0:0:0:0:0:0:0:1]:8443/x", true}, {"https://[2001:DB8::1]", "https://[2001:db8::1]:443", true},

		{url, "https://example.com:8443/hook", false}, {url, "https://example.org/hook", false}, {url, "https://www.example.com/hook", false},
		{url, "https://example.co/m/hook", false}, {url, "https://example.com.example.org/hook", false}, {"https://bücher.example", "https://bucher.example", false},
		{"https://faß.example", "https://fass.example", false}, {"https://[::1]", "https://[::2]", false}, {"https://93.184.216.34", "https://93.184.216.35", false},
		{"https://[::ffff:93.184.216.34]", "https://93.184.216.34", false}, {"https://example.com:1024", "https://example.com:1025", false},
	} {
		for _, text := range []string{test.a, test.b} {
			if err := domain.CheckWebhookURL(text); err != nil {
				t.Fatalf("%s %v", text, err)
			}
		}
		if domain.SameWebhookServer(test.a, test.b) != test.same || domain.SameWebhookServer(test.b, test.a) != test.same {
			t.Errorf("%s and %s: not %t", test.a, test.b, test.same)
		}
	}
}

// TestCheckWebhookURL is the table of spellings of an address, each with a word of
// what is wrong with it; none for those that are taken.
func TestCheckWebhookURL(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("a", 63)
	for text, word := range map[string]string{
		"https://example.com": "", "https://example.com/": "", "https://example.com/a/b?c=d&e=%20": "", "https://example.com?x": "",
		"HTTPS://EXAMPLE.COM/": "", "hTtPs://example.com": "", "https://example.com./": "", "https://a.b.c.example.co.uk": "",
		"https://example.com:443": "", "https://example.com:1024": "", "https://example.com:65535/x": "", "https://localhost": "",
		"https://bücher.example": "", "https://xn--bcher-kva.example": "", "https://例え.テスト": "", "https://BÜCHER.example": "",
		"https://93.184.216.34": "", "https://[2606:2800:220:1::1]:8443/x": "", "https://127.0.0.1": "", "https://[::1]": "",
		"https://1.example.com": "", "https://example.com/ünï": "", "https://example.com//x": "", "https://0xff.example": "",
		"https://" + label + "." + label + "." + label + ".com": "",

		"": "https://", "example.com": "https://", "//example.com": "https://", "/hook": "https://", "https:": "host", "https://": "host",
		"https:///x": "host", "https:example.com": "host", "https:/example.com": "host", "https://?x": "host", "https://:443": "host",
		"http://example.com": "https://", "ftp://example.com": "https://", "wss://example.com": "https://", "javascript:alert(1)": "https://",
		"file:///etc/passwd": "https://", "httpss://example.com": "https://", "https//example.com": "https://",

		"https://user@example.com": "user name", "https://user:pass@example.com": "user name", "https://@example.com": "user name",
		"https://:@example.com": "user name", "https://example.com@127.0.0.1": "user name", "https://a%40b@example.com": "user name",
		"https://example.com#x": "fragment", "https://example.com#": "fragment", "https://example.com/a#b?c": "fragment",

		"https://example.com:": "port", "https://example.com:0": "port", "https://example.com:80": "port", "https://example.com:22": "port",
		"https://example.com:442": "port", "https://example.com:1023": "port", "https://example.com:65536": "port",
		"https://example.com:0443": "port", "https://example.com:x": "https URL", "https://example.com:-1": "https URL",
		"https://example.com:443:443": "host", "https://example.com:99999999999999999999": "port", "https://[::1]:25": "port",
		"https://[::1]x": "https URL",

		"https://2130706433": "host", "https://0x7f000001": "host", "https://0x7f.1": "host", "https://127.1": "host", "https://0177.0.0.1": "host",
		"https://127.0.0.01": "host", "https://127.0.0.1.": "host", "https://256.256.256.256": "host", "https://1.2.3.4.5": "host",
		"https://127.0.0.0x1": "host", "https://0x": "host", "https://example.1": "host", "https://example.0X7F": "host",
		"https://１２７.０.０.１": "host", "https://127。0。0。1": "host", "https://[fe80::1%25eth0]": "host", "https://[127.0.0.1]": "host",
		"https://[]": "host", "https://[::1": "https URL", "https://::1": "https URL", "https://[::ffff:127.0.0.1]": "", "https://[64:ff9b::7f00:1]": "",

		"https://.": "host", "https://..": "host", "https://.example.com": "host", "https://example..com": "host", "https://example.com..": "host",
		"https://-example.com": "host", "https://example-.com": "host", "https://a_b.example.com": "host", "https://" + label + "a.com": "host",
		"https://" + label + "." + label + "." + label + "." + label + ".com": "host", "https://exa%6dple.com": "host", "https://%31%32%37.0.0.1": "host",
		"https://xn--a.example": "host", "https://*.example.com": "host", "https://exa!mple.com": "host", "https://a,b.com": "host",

		" https://example.com": "white space", "https://example.com ": "white space", "https://exa mple.com": "white space",
		"https://example.com/a b": "white space", "https://example.com/\t": "white space", "https://example.com\r\nX: y": "white space",
		"https://example.com/\x00": "white space", "https://example.com/\x7f": "white space", "https://example.com/\u00a0": "white space",
		"https://example.com\\@127.0.0.1": "white space", "https:\\\\example.com": "white space", "https://example.com/\u200b": "white space",
		"https://example.com/\u202e": "white space", "https://example.com/\xff": "white space", "https://example.com/%zz": "https URL",
	} {
		err := domain.CheckWebhookURL(text)
		switch {
		case word == "" && err != nil:
			t.Errorf("%q is refused: it %v", text, err)
		case word != "" && err == nil:
			t.Errorf("%q is taken", text)
		case word != "" && !strings.Contains(err.Error(), word):
			t.Errorf("%q %v: that does not say %q", text, err, word)
		}
	}
}

func TestWebhookURLLength(t *testing.T) {
	t.Parallel()
	const base = "https://example.com/"
	for _, letter := range []string{"a", "é", "😀"} {
		fits := base + strings.Repeat(letter, domain.MaxWebhookURL-len(base))
		if err := domain.CheckWebhookURL(fits); err != nil {
			t.Errorf("2000 characters of %s: %v", letter, err)
		}
		if err := domain.CheckWebhookURL(fits + letter); err == nil || !strings.Contains(err.Error(), "2000") {
			t.Errorf("2001 characters of %s: %v", letter, err)
		}
	}
}

// FuzzCheckWebhookURL holds of every address that is taken what others rely on.
func FuzzCheckWebhookURL(f *testing.F) {
	for _, text := range []string{
		"https://example.com", "https://user@example.com:80/#x", "https://[::1]:8443", "https://0x7f.1", "https://bücher.example.",
		"HTTPS://127.0.0.1", "https://example.com\\@x", "https://a%2eb", "https://[fe80::1%25x]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if domain.CheckWebhookURL(text) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q is taken, and is no URL: %v", text, err)
		}
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" || u.Opaque != "" {
			t.Errorf("%q is taken: %+v", text, u)
		}
		if utf8.RuneCountInString(text) > domain.MaxWebhookURL || strings.ContainsAny(text, "\x00\r\n\t \\#") {
			t.Errorf("%q is taken", text)
		}
		if port := u.Port(); port != "" {
			if n, err := strconv.Atoi(port); err != nil || n != 443 && (n < 1024 || n > 65535) {
				t.Errorf("%q is taken, with the port %s", text, port)
			}
		}
	})
}
