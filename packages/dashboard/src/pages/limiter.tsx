export function LimiterPage() {
  return <h1>Limiter</h1>
}
