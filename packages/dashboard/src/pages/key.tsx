export function KeyPage() {
  return <h1>Key</h1>
}
