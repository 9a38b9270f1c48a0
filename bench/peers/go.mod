module sluice/bench/peers

go 1.26.0

replace sluice => ../..

require (
	github.com/buraksezer/consistent v0.10.0
	github.com/cloudwego/kitex v0.15.0
	github.com/cncf/xds/go v0.0.0-20251210132809-ee656c7534f5
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f
	github.com/go-kratos/kratos/v2 v2.8.4
	github.com/kkdai/maglev v0.2.0
	github.com/mroth/weightedrand/v2 v2.1.0
	github.com/serialx/hashring v0.0.0-20200727003509-22c0c7ab6b1b
	github.com/smallnest/weighted v0.0.0-20230419055410-36b780e40a7a
	github.com/zeromicro/go-zero v1.10.3
	google.golang.org/grpc v1.80.0
	sluice v0.0.0
)

require (
	github.com/bytedance/gopkg v0.1.3 // indirect
	github.com/bytedance/sonic v1.15.5 // indirect
	github.com/bytedance/sonic/loader v0.5.3 // indirect
	github.com/cloudwego/base64x v0.1.6 // indirect
	github.com/cloudwego/gopkg v0.1.6 // indirect
	github.com/cloudwego/runtimex v0.1.1 // indirect
	github.com/dchest/siphash v1.2.2 // indirect
	github.com/envoyproxy/protoc-gen-validate v1.3.0 // indirect
	github.com/google/pprof v0.0.0-20240727154555-813a5fbdbec8 // indirect
	github.com/klauspost/cpuid/v2 v2.2.9 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/spaolacci/murmur3 v1.1.0 // indirect
	github.com/twitchyliquid64/golang-asm v0.15.1 // indirect
	golang.org/x/arch v0.14.0 // indirect
	golang.org/x/exp v0.0.0-20200119233911-0405dc783f0a // indirect
	golang.org/x/net v0.50.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.34.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260128011058-8636f8732409 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
