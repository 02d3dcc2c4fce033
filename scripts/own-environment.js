/**
 * Returns the environment without npm's variables for the current folder and workspace.
 *
 * Otherwise, a command in another folder would use these variables.
 *
 * @returns {NodeJS.ProcessEnv}
 */
export function ownEnvironment() {
  const inherited = /^(npm_(package|lifecycle|config_(local_prefix|workspace))|INIT_CWD)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !inherited.test(name)))
}
