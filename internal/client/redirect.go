package client

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	redirectsTo = "it redirects to "
	loginPage   = ", a login page"
)

// IsLogin reports whether what [Exchange] or [Answer] says of a redirect is that it
// leads to a login page.
func IsLogin(redirect string) bool { return strings.HasSuffix(redirect, loginPage) }

// redirectText says where a response redirects a request for a URL or path, "" where it does
// not. The query and any password are left out: they may be secret.
func redirectText(status int, asked, location string) string {
	if location == "" || status < 300 || status > 399 || status == http.StatusNotModified {
		return ""
	}
	to, err := url.Parse(location)
	if err != nil {
		return redirectsTo + "an address that cannot be read"
	}
	if from, err := url.Parse(asked); err == nil {
		to = from.ResolveReference(to)
	}
	to.User, to.RawQuery, to.ForceQuery, to.Fragment, to.RawFragment = nil, "", false, "", ""
	if isLogin(to) {
		return redirectsTo + to.String() + loginPage
	}
	if to.Host == "" {
		return redirectsTo + to.String() + ": use that path"
	}
	return redirectsTo + to.String() + ": use that address"
}

// isLogin reports whether an address looks like that of a login page.
func isLogin(u *url.URL) bool {
	first, _, _ := strings.Cut(strings.ToLower(u.Hostname()), ".")
	if slices.Contains([]string{"accounts", "auth", "idp", "login", "signin", "sso"}, first) {
		return true
	}
	for part := range strings.SplitSeq(strings.ToLower(u.Path), "/") {
		switch part, _, _ = strings.Cut(part, "."); part { // login.html, login.php
		case "login", "log-in", "log_in", "signin", "sign-in", "sign_in", "sso", "saml", "saml2", "oauth", "oauth2", "authorize":
			return true
		}
	}
	return false
}
