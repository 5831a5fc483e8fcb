@ One instruction of each timing, for llvm-mca; the order is that of cortex-m55.txt. Names of groups stand behind.
csel r0, r1, r2, eq
add.w r0, r1, r2
add.w r0, r1, r2, lsl #2
sub.w r0, r1, r2
sub.w r0, r1, r2, lsl #2
rsb.w r0, r1, r2
rsb.w r0, r1, r2, lsl #2
adc.w r0, r1, r2
adc.w r0, r1, r2, lsl #2
sbc.w r0, r1, r2
sbc.w r0, r1, r2, lsl #2
and.w r0, r1, r2
and.w r0, r1, r2, lsl #2
orr.w r0, r1, r2
orr.w r0, r1, r2, lsl #2
orn.w r0, r1, r2
orn.w r0, r1, r2, lsl #2
eor.w r0, r1, r2
eor.w r0, r1, r2, lsl #2
bic.w r0, r1, r2
bic.w r0, r1, r2, lsl #2
mov.w r0, r1
mvn.w r0, r1
cmp.w r0, r1
cmn.w r0, r1
tst.w r0, r1
teq.w r0, r1
mvn.w r0, r1, lsl #2
cmp.w r0, r1, lsl #2
cmn.w r0, r1, lsl #2
tst.w r0, r1, lsl #2
teq.w r0, r1, lsl #2
movw r0, #1
movt r0, #1
lsl.w r0, r1, #3
lsr.w r0, r1, #3
asr.w r0, r1, #3
ror.w r0, r1, #3
clz r0, r1
rbit r0, r1
rev.w r0, r1
rev16.w r0, r1
revsh.w r0, r1
bfi r0, r1, #2, #3
bfc r0, #2, #3
sbfx r0, r1, #2, #3
ubfx r0, r1, #2, #3
sxtb.w r0, r1
sxth.w r0, r1
uxtb.w r0, r1
uxth.w r0, r1
sxtb16 r0, r1
uxtb16 r0, r1
sxtab r0, r1, r2
sxtah r0, r1, r2
uxtab r0, r1, r2
uxtah r0, r1, r2
sxtab16 r0, r1, r2
uxtab16 r0, r1, r2
pkhbt r0, r1, r2, lsl #16
pkhtb r0, r1, r2, asr #16
ssat r0, #8, r1
usat r0, #8, r1
ssat16 r0, #8, r1
usat16 r0, #8, r1
qadd r0, r1, r2
qsub r0, r1, r2
qdadd r0, r1, r2
qdsub r0, r1, r2
sel r0, r1, r2
sadd16 r0, r1, r2
ssub16 r0, r1, r2
uadd16 r0, r1, r2
usub16 r0, r1, r2
qadd16 r0, r1, r2
qsub16 r0, r1, r2
uqadd16 r0, r1, r2
uqsub16 r0, r1, r2
shadd16 r0, r1, r2
uhadd16 r0, r1, r2
sadd8 r0, r1, r2
ssub8 r0, r1, r2
uadd8 r0, r1, r2
usub8 r0, r1, r2
qadd8 r0, r1, r2
qsub8 r0, r1, r2
uqadd8 r0, r1, r2
uqsub8 r0, r1, r2
sasx r0, r1, r2
ssax r0, r1, r2
qasx r0, r1, r2
qsax r0, r1, r2
usad8 r0, r1, r2
mul r0, r1, r2
smulbb r0, r1, r2
smulbt r0, r1, r2
smultb r0, r1, r2
smultt r0, r1, r2
smulwb r0, r1, r2
smulwt r0, r1, r2
smuad r0, r1, r2
smuadx r0, r1, r2
smusd r0, r1, r2
smusdx r0, r1, r2
smmul r0, r1, r2
smmulr r0, r1, r2
mla r0, r1, r2, r3
mls r0, r1, r2, r3
smlabb r0, r1, r2, r3
smlabt r0, r1, r2, r3
smlatb r0, r1, r2, r3
smlatt r0, r1, r2, r3
smlawb r0, r1, r2, r3
smlawt r0, r1, r2, r3
smlad r0, r1, r2, r3
smladx r0, r1, r2, r3
smlsd r0, r1, r2, r3
smlsdx r0, r1, r2, r3
smmla r0, r1, r2, r3
smmlar r0, r1, r2, r3
smmls r0, r1, r2, r3
smmlsr r0, r1, r2, r3
usada8 r0, r1, r2, r3
smull r0, r1, r2, r3
umull r0, r1, r2, r3
smlal r0, r1, r2, r3
umlal r0, r1, r2, r3
umaal r0, r1, r2, r3
smlald r0, r1, r2, r3
smlaldx r0, r1, r2, r3
smlsld r0, r1, r2, r3
smlsldx r0, r1, r2, r3
smlalbb r0, r1, r2, r3
smlalbt r0, r1, r2, r3
smlaltb r0, r1, r2, r3
smlaltt r0, r1, r2, r3
sdiv r0, r1, r2
udiv r0, r1, r2
ldr.w r0, [r1, #4]
ldr.w r0, [r1, r2, lsl #2]
ldrb.w r0, [r1, #4]
ldrb.w r0, [r1, r2, lsl #2]
ldrh.w r0, [r1, #4]
ldrh.w r0, [r1, r2, lsl #2]
ldrsb.w r0, [r1, #4]
ldrsb.w r0, [r1, r2, lsl #2]
ldrsh.w r0, [r1, #4]
ldrsh.w r0, [r1, r2, lsl #2]
str.w r0, [r1, #4]
str.w r0, [r1, r2, lsl #2]
strb.w r0, [r1, #4]
strb.w r0, [r1, r2, lsl #2]
strh.w r0, [r1, #4]
strh.w r0, [r1, r2, lsl #2]
ldrd r0, r1, [r2]
strd r0, r1, [r2]
ldm.w r0!, {r1, r2, r3}
stm.w r0!, {r1, r2, r3}
pop.w {r4, r5, r6}
push.w {r4, r5, r6}
b #8
bl #8
bx lr
blx r3
cbz r0, #8
beq #8
tbb [pc, r0]
vldr s0, [r0]
vldr d0, [r0]
vstr s0, [r0]
vstr d0, [r0]
vldmia r0!, {s0, s1}
vstmia r0!, {s0, s1}
vmov s0, r0
vmla.f32 s0, s1, s2
vmls.f32 s0, s1, s2
vnmla.f32 s0, s1, s2
vnmls.f32 s0, s1, s2
vfma.f32 s0, s1, s2
vfms.f32 s0, s1, s2
vfnma.f32 s0, s1, s2
vfnms.f32 s0, s1, s2
vadd.f32 s0, s1, s2
vsub.f32 s0, s1, s2
vmul.f32 s0, s1, s2
vnmul.f32 s0, s1, s2
vdiv.f32 s0, s1, s2
vmaxnm.f32 s0, s1, s2
vminnm.f32 s0, s1, s2
vseleq.f32 s0, s1, s2
vselge.f32 s0, s1, s2
vselgt.f32 s0, s1, s2
vneg.f32 s0, s1
vabs.f32 s0, s1
vcmp.f32 s0, s1
vsqrt.f32 s0, s1
vmla.f64 d0, d1, d2
vmls.f64 d0, d1, d2
vnmla.f64 d0, d1, d2
vnmls.f64 d0, d1, d2
vfma.f64 d0, d1, d2
vfms.f64 d0, d1, d2
vfnma.f64 d0, d1, d2
vfnms.f64 d0, d1, d2
vadd.f64 d0, d1, d2
vsub.f64 d0, d1, d2
vmul.f64 d0, d1, d2
vnmul.f64 d0, d1, d2
vdiv.f64 d0, d1, d2
vmaxnm.f64 d0, d1, d2
vminnm.f64 d0, d1, d2
vseleq.f64 d0, d1, d2
vselge.f64 d0, d1, d2
vselgt.f64 d0, d1, d2
vneg.f64 d0, d1
vabs.f64 d0, d1
vcmp.f64 d0, d1
vsqrt.f64 d0, d1
vcvt.s32.f32 s0, s1
vcvt.f32.s32 s0, s1
vcvt.f64.f32 d0, s1
vldrb.u8 q0, [r0], #16 @ vldr
vstrb.8 q0, [r0], #16 @ vstr
vldrb.u8 q0, [r0, q1] @ gather
vstrb.8 q0, [r0, q1] @ scatter
vld40.8 {q0, q1, q2, q3}, [r0] @ vld4
vst40.8 {q0, q1, q2, q3}, [r0] @ vst4
vmov q0[2], q0[0], r0, r1 @ vmov to lanes
vmov r0, r1, q0[2], q0[0] @ vmov from lanes
vdup.32 q0, r0 @ vdup
vctp.8 r0 @ vctp
vmlava.s8 r0, q0, q1 @ vmlav
vmovlb.s8 q0, q1 @ vmovl
vshrnb.i32 q0, q1, #3 @ vshrn
vqmovnb.s32 q0, q1 @ vmovn
vmaxv.s8 r0, q0 @ vmaxv
vabav.s8 r0, q0, q1 @ vabav
vidup.u8 q0, r0, #1 @ vidup
vpsel q0, q1, q2 @ vpsel
vcmp.i32 eq, q0, q1 @ vcmp
vadd.i32 q0, q1, r2 @ vadd.i
vadd.f32 q0, q1, r2 @ vadd.f scalar
vqdmullb.s16 q0, q1, r2 @ vqdmull
vadc.i32 q0, q1, q2 @ vadc
vshl.s32 q0, r1 @ vshl
vrshl.s32 q0, r1 @ vrshl
vqshl.s32 q0, q1, #2 @ vqshl
vbrsr.8 q0, q1, r2 @ vbrsr
vmul.i32 q0, q1, r2 @ vmul.i
vmla.i32 q0, q1, r2 @ vmla
vfma.f32 q0, q1, r2 @ vfma
vmul.f32 q0, q1, q2 @ vmul.f
vadd.f32 q0, q1, q2 @ vadd.f
vabs.f32 q0, q1 @ vabs.f
vmaxnm.f32 q0, q0, q1 @ vmaxnm
vqrdmulh.s32 q0, q1, q2 @ vqdmulh
vmov.i32 q0, #0 @ vmov imm
vshr.s32 q0, q1, #3 @ vshr
vrshr.s32 q0, q1, #3 @ vrshr
vcvt.s32.f32 q0, q1 @ vcvt
vabs.s32 q0, q1 @ vabs
vand q0, q1, q2 @ vand
vpst @ vpst
vaddt.i32 q0, q1, q2 @ vadd.i
vpnot @ vpnot
