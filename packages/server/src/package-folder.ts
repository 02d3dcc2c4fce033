// The package's folder, which has files that the service reads at run time.

/** Its URL, from `src/` and from `dist/`, where all files are at the top. */
export const PACKAGE: URL = new URL('..', import.meta.url)
