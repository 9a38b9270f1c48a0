package conf

import (
	"slices"
	"strings"
)

const notSupported = "not supported yet"

// notYet lists what the format knows and this version cannot do. A key that is here is refused, whatever it is set to,
// except to what it does without the feature: "", 0, "0s", false, [], "off" or a word of fine. With only set, just
// these words are refused. Whoever builds a feature deletes its rows.
var notYet = []struct{ key, fine, only string }{
	{key: "process.user"},
	{key: "log.access"},
	{key: "admin.listen"},
	{key: "admin.token_file"},
	{key: "admin.tls.cert"},
	{key: "admin.tls.key"},
	{key: "admin.tls.client_ca"},

	{key: "listeners.max_connections_per_ip"},
	{key: "listeners.max_connection_rate"},
	{key: "listeners.connection_burst"},
	{key: "listeners.access"},
	{key: "listeners.access_file"},
	{key: "listeners.shadow"},
	{key: "listeners.proxy_protocol"},
	{key: "listeners.trusted_cidrs"},
	{key: "listeners.untrusted_proxy", fine: "reject"},
	{key: "listeners.preface_timeout", fine: "5s"},
	{key: "listeners.bandwidth_in"},
	{key: "listeners.bandwidth_out"},
	{key: "listeners.transparent"},
	{key: "listeners.starttls"},
	{key: "listeners.tls", only: aTable},
	{key: "listeners.routes", only: aTable},

	{key: "pools.hash_key", only: "sni"},
	{key: "pools.on_no_server", only: "hold unlisten"},
	{key: "pools.max_queue"},
	{key: "pools.queue_timeout", fine: "5s"},
	{key: "pools.send_proxy"},
	{key: "pools.proxy_tlvs"},
	{key: "pools.source"},
	{key: "pools.on_down", fine: "keep"},
	{key: "pools.max_connecting"},
	{key: "pools.tls", only: aTable},

	{key: "pools.check.type", only: "tls http https send_expect redis postgres mysql exec"},
	{key: "pools.check.send_proxy"},
	{key: "pools.check.send"},
	{key: "pools.check.send_hex"},
	{key: "pools.check.expect"},
	{key: "pools.check.expect_hex"},
	{key: "pools.check.expect_regex"},
	{key: "pools.check.method", fine: "GET"},
	{key: "pools.check.path", fine: "/"},
	{key: "pools.check.host"},
	{key: "pools.check.expect_status", fine: "200-399"},
	{key: "pools.check.user"},
	{key: "pools.check.password_file"},
	{key: "pools.check.database"},
	{key: "pools.check.tls"},
	{key: "pools.check.role", fine: "any"},
	{key: "pools.check.max_lag"},
	{key: "pools.check.command"},

	{key: "pools.outlier.consecutive_failures"},
	{key: "pools.outlier.window", fine: "10s"},
	{key: "pools.outlier.ejection_time", fine: "10s"},
	{key: "pools.outlier.max_ejection_time", fine: "5m0s"},
	{key: "pools.outlier.max_ejection_percent", fine: "50"},
}

// aTable is the value by which a table is asked for: that it is there at all.
const aTable = "table"

var withoutFeature = []string{"", "0", "0s", "false", "[]", "off"}

// isLater reports whether key, set to value, asks for something of notYet.
func isLater(key, value string) bool {
	for _, row := range notYet {
		switch {
		case row.key != key:
		case row.only != "":
			return slices.Contains(strings.Fields(row.only), value)
		default:
			return !slices.Contains(withoutFeature, value) && !slices.Contains(strings.Fields(row.fine), value)
		}
	}
	return false
}
