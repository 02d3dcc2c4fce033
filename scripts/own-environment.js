/**
 * The environment without what npm tells its scripts: which folder and workspace they belong to. A command in another folder
 * would take that for its own.
 *
 * @returns {NodeJS.ProcessEnv}
 */
export function ownEnvironment() {
  const inherited = /^(npm_(package|lifecycle|config_(local_prefix|workspace))|INIT_CWD)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !inherited.test(name)))
}
