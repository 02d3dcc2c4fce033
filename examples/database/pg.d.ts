/** The part of `pg` that this example uses. */
declare module 'pg' {
  export class Pool {
    constructor(options: {
      readonly host: string
      readonly port: number
      readonly user: string
      readonly database: string
      readonly max: number
      /** How long a query may wait for a connection. */
      readonly connectionTimeoutMillis: number
      /** 0: never closes an idle connection. */
      readonly idleTimeoutMillis: number
    })
    query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly object[] }>
    end(): Promise<void>
  }
}
