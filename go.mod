module sluice

go 1.26.0

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/cloudwego/netpoll v0.7.2
	github.com/spf13/cobra v1.10.2
	github.com/valyala/bytebufferpool v1.0.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/bytedance/gopkg v0.1.1 // indirect
	github.com/cloudwego/gopkg v0.1.4 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
)
