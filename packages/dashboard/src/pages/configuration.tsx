export function ConfigurationPage() {
  return <h1>Configuration</h1>
}
