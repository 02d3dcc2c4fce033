// biome-ignore lint/style/noDefaultExport: Next.js requires a default export.
export default { distDir: 'dist' }
