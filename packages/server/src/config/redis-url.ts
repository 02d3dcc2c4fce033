// The format of Redis URLs in the configuration and on the command line.

/** A regular expression for URLs such as `redis://user:password@host:6379/0`. */
export const REDIS_URL_PATTERN = '^(redis|valkey)s?://[^\\s/?#]+(/[0-9]*)?$'

const REDIS_URL = new RegExp(REDIS_URL_PATTERN)

export function isRedisUrl(text: string): boolean {
  return REDIS_URL.test(text) && URL.canParse(text)
}

/** Removes user names and passwords from the URLs in a text. */
export function withoutCredentials(text: string): string {
  return text.replaceAll(/\/\/[^\s/]*@/g, '//')
}
