package client

import (
	"strings"
	"testing"
)

// Where a redirect leads is said in full, without a query or a password.
func TestRedirectText(t *testing.T) {
	const asked = "http://h:1/v1/models"
	for _, c := range []struct {
		status          int
		asked, location string
		want            string
	}{
		{301, asked, "http://host:8000/v1/models", "it redirects to http://host:8000/v1/models: use that address"},
		{302, asked, "https://h/v1/models?token=sk-1#x", "it redirects to https://h/v1/models: use that address"},
		{303, asked, "/v2/models", "it redirects to http://h:1/v2/models: use that address"},
		{307, asked, "models/", "it redirects to http://h:1/v1/models/: use that address"},
		{308, asked, "//user:pw@other/x", "it redirects to http://other/x: use that address"},
		{307, "/v1/chat/completions", "/v1/", "it redirects to /v1/: use that path"},
		{302, asked, "https://accounts.example.com/o?client=1", "it redirects to https://accounts.example.com/o, a login page"},
		{302, asked, "/Login?next=/v1", "it redirects to http://h:1/Login, a login page"},
		{302, asked, "https://sso.corp/start", "it redirects to https://sso.corp/start, a login page"},
		{302, asked, "https://h/oauth2/start", "it redirects to https://h/oauth2/start, a login page"},
		{302, asked, "https://h/login.php", "it redirects to https://h/login.php, a login page"},
		{307, asked, "https://authors.example/logins", "it redirects to https://authors.example/logins: use that address"},
		{307, asked, "http://[bad?key=sk-1", "it redirects to an address that cannot be read"},
		{302, asked, "http://user:s3cretpass@host:80x/p#tok=abc", "it redirects to an address that cannot be read"},
		{302, asked, "http://h/%zz#tok=abc", "it redirects to an address that cannot be read"},
		{304, asked, "http://x", ""},
		{300, asked, "", ""},
		{200, asked, "http://x", ""},
	} {
		got := redirectText(c.status, c.asked, c.location)
		if got != c.want || IsLogin(got) != strings.HasSuffix(c.want, "login page") {
			t.Errorf("%d %s: %q, want %q", c.status, c.location, got, c.want)
		}
	}
}
