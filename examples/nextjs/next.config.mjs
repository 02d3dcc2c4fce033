// biome-ignore lint/style/noDefaultExport: Next.js wants it so.
export default { distDir: 'dist' }
