import { fork } from 'node:child_process'

/** Starts a worker process with the built package. Resolves to the worker's report once it exits with code 0. */
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
      else reject(new Error(`A worker exited with code ${code}. Build the package if you haven't.`))
    })
    child.send(order)
  })
}
