package conf

import "time"

// Every default of the format, in one place. What is not named here is zero: none, no limit, off.

func defaultConfig() Config {
	return Config{
		Process: Process{ShutdownTimeout: time.Minute, Splice: "auto"},
		Log:     Log{Level: "info", Format: "text", Output: "stderr", Access: "off"},
		Admin:   Admin{Listen: Address{Unix: "/run/sluice/admin.sock"}},
	}
}

func defaultListener() Listener {
	return Listener{
		ProxyProtocol:     "off",
		UntrustedProxy:    "reject",
		PrefaceTimeout:    5 * time.Second,
		IdleTimeout:       time.Hour,
		HalfClose:         true,
		HalfClosedTimeout: 30 * time.Second,
		MaxSessionJitter:  0.1,
		Keepalive:         Keepalive{Idle: time.Minute, Interval: 10 * time.Second, Count: 3},
		UserTimeout:       90 * time.Second,
	}
}

func defaultPool() Pool {
	return Pool{
		Balance:        "round_robin",
		HashKey:        "source_ip",
		ConnectTimeout: 5 * time.Second,
		ConnectRetries: 2,
		OnNoServer:     "close",
		QueueTimeout:   5 * time.Second,
		SendProxy:      "off",
		OnDown:         "keep",
		Outlier:        defaultOutlier(),
	}
}

func defaultOutlier() Outlier {
	return Outlier{
		Window:             10 * time.Second,
		EjectionTime:       10 * time.Second,
		MaxEjectionTime:    5 * time.Minute,
		MaxEjectionPercent: 50,
	}
}

func defaultCheck() Check {
	return Check{
		Type:         "tcp",
		Interval:     2 * time.Second,
		Timeout:      time.Second,
		Rise:         2,
		Fall:         3,
		Jitter:       0.1,
		InitialState: "checking",
		SendProxy:    "off",
		Method:       "GET",
		Path:         "/",
		ExpectStatus: "200-399",
		Role:         "any",
	}
}

func defaultServer() Server { return Server{Weight: 1, State: "ready"} }

func defaultPoolTLS() PoolTLS { return PoolTLS{Verify: true} }

func defaultListenerTLS() ListenerTLS { return ListenerTLS{MinVersion: "1.2"} }
