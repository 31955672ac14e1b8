module spanscore.invalid/jaeger

go 1.24.6

require github.com/jaegertracing/jaeger v1.76.0 // the Go module's name for Jaeger 2.13

replace github.com/Shopify/sarama => github.com/Shopify/sarama v1.33.0
