import { fork } from 'node:child_process'

/** Sets a process to work on the package as it was built; resolves to what it reports when it has ended well. */
export function work<Order extends object, Report>(worker: URL, order: Order): Promise<Report> {
  return new Promise((resolve, reject) => {
    const child = fork(worker, { execArgv: [] })
    let report: Report | undefined
    child.once('message', (message: Report) => {
      report = message
    })
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0 && report !== undefined) resolve(report)
      else reject(new Error(`a worker ended with code ${code}; has the package been built?`))
    })
    child.send(order)
  })
}
