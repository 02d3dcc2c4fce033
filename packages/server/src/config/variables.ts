/** A text whose variables are replaced. */
export interface Replaced {
  readonly text: string
  /** Those of the environment that are in it, by name. */
  readonly variables: ReadonlyMap<string, string>
  readonly problems: ReadonlySet<string>
}

const VARIABLE = /\$(?:\$|\{([^{}]*)\})|\$\{/g
const REFERENCE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/** Puts values in the place of `${NAME}` and `${NAME:-default}`; `$$` is a dollar. What a value says is not read again. */
export function replaceVariables(text: string, environment: NodeJS.ProcessEnv): Replaced {
  const variables = new Map<string, string>()
  const problems = new Set<string>()
  const replaced = text.replace(VARIABLE, (match, reference?: string) => {
    if (match === '$$') return '$'
    const [, name, byDefault] = REFERENCE.exec(reference ?? '') ?? []
    if (name === undefined) {
      problems.add(`'$\u007b' begins a variable; where it is meant as it is, write '$$\u007b'`)
      return match
    }
    const value = environment[name]
    if (byDefault !== undefined && (value === undefined || value === '')) return byDefault
    if (value === undefined) {
      problems.add(`the environment has no variable ${name}; set it, or give a default: \${${name}:-default}`)
      return ''
    }
    variables.set(name, value)
    return value
  })
  return { text: replaced, variables, problems }
}
