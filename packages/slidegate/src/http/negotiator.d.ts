// The part of negotiator that reads media types. Importing it alone keeps the other parts out of bundles.
declare module 'negotiator/lib/mediaType.js' {
  /** Returns the types that the client accepts, the preferred one first. */
  function preferredMediaTypes(accept: string, types: readonly string[]): string[]
  export = preferredMediaTypes
}
