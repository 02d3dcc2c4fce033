#!/usr/bin/env node
// Committed, not built: npm links a workspace's bin at install, before anything has been compiled.
import { main } from '../dist/main.js'

await main('slidegate-server')
