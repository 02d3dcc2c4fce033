import { afterAll, describe, expect, it } from 'vitest'
import { slidegate, slidegateHere, temporaryFolder } from '../support/cli.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const GOOD = 'limiters:\n  api: { limits: [{ kind: slidingWindow, limit: 10, window: 1s }] }\n'
const WRONG = `limiters:
  api:
    limits:
      - { kind: slidingWindw, limit: 10, window: 1s }
      - { kind: slidingWindow, limit: 0, window: 1s }
auth:
  tokens:
    - { name: ci, role: chek, token: a-secret-in-the-file }
store:
  redis: { url: 'http://user:a-secret-in-a-url@host' }
capture: { sampleRatio: 2, secret: a-secret-in-a-capture }
`
const SECRETS = /a-secret-in/

describe('slidegate validate', () => {
  it('exits with 0 for a valid configuration', async () => {
    const file = folder.write('good.yaml', GOOD)
    const human = await slidegateHere(['validate', '--human', file])
    expect(human).toEqual({ code: 0, stdout: `${file} is valid: 1 limiter\n`, stderr: '' })
    const { code, stdout } = await slidegateHere(['validate', file])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ valid: true, limiters: ['api'], problems: [], notes: [] })
  })

  it('reports limits that would start at zero', async () => {
    const before = folder.write('before.yaml', GOOD)
    const file = folder.write('after.yaml', GOOD.replace('window: 1s', 'window: 1h, precision: 1s'))
    const { code, stdout } = await slidegateHere(['validate', '--human', file, '--before', before])
    expect(code).toBe(0)
    expect(stdout).toMatch(/1 limiter\nlimiter api: the usage of 10-per-1h starts at zero after this change/)
    const same = await slidegateHere(['validate', file, '--before', file])
    expect(JSON.parse(same.stdout).notes).toEqual([])
  })

  it('shows the places of mistakes, and exits with 2', async () => {
    const file = folder.write('wrong.yaml', WRONG)
    const { code, stdout, stderr } = await slidegateHere(['validate', '--human', file])
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' })
    expect(stdout).toMatch(/\n5 problems\n$/)
    expect(stdout).toContain(
      [
        `${file}:4:17: limiters.api.limits[0].kind is "slidingWindw"; did you mean slidingWindow?`,
        '  4 |       - { kind: slidingWindw, limit: 10, window: 1s }',
        '    |                 ^',
      ].join('\n'),
    )
    expect(stdout).not.toMatch(SECRETS)
  })

  it('prints JSON if the output is not a terminal', async () => {
    const file = folder.write('wrong.yaml', WRONG)
    const { code, stdout } = await slidegateHere(['validate', file])
    expect(code).toBe(2)
    const told = JSON.parse(stdout)
    expect(told).toMatchObject({ valid: false })
    const places = told.problems.map(({ line, column }: { line: number; column: number }) => [line, column])
    expect(places).toEqual([
      [4, 17],
      [5, 39],
      [8, 25],
      [10, 17],
      [11, 25],
    ])
    expect(told.problems[0]).toEqual({
      file,
      line: 4,
      column: 17,
      message: 'limiters.api.limits[0].kind is "slidingWindw"; did you mean slidingWindow?',
    })
    expect(stdout).not.toMatch(SECRETS)
  })

  it('reads environment variables', async () => {
    const file = folder.write('variable.yaml', GOOD.replace('10', '"$' + '{LIMIT}"'))
    expect((await slidegateHere(['validate', file], { LIMIT: '5' })).code).toBe(0)
    expect((await slidegateHere(['validate', file], { LIMIT: 'five' })).code).toBe(2)
  })

  it('escapes control characters', async () => {
    const file = folder.write('steering.yaml', '"\\e[2J\u009b\u202e": 1\n# \u001b[31m\nx\u009b: 2')
    for (const flags of [['--human'], []]) {
      const { code, stdout } = await slidegateHere(['validate', ...flags, file])
      expect(code).toBe(2)
      for (const character of ['\u001b', '\u009b', '\u202e']) expect(stdout).not.toContain(character)
    }
  })

  it('exits with 2 for a missing file', async () => {
    const { code, stdout } = await slidegateHere(['validate', '--human', `${folder.path}/missing.yaml`])
    expect(code).toBe(2)
    expect(stdout).toMatch(/missing\.yaml:1:1: can't read the file: ENOENT.*\n\n1 problem\n$/)
  })
})

it('slidegate serve rejects an invalid configuration and lists all problems', async () => {
  const { code, stdout, stderr } = await slidegate(['serve', '--config', folder.write('wrong.yaml', WRONG)])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  const lines = stderr.trimEnd().split('\n')
  expect(lines).toHaveLength(5)
  for (const line of lines) expect(line).toMatch(/^slidegate: .*wrong\.yaml:\d+:\d+: /)
  expect(stderr).not.toMatch(SECRETS)
})
